package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/packetfilter"
	"github.com/berth-dev/berth/internal/contract/aks"
	"github.com/berth-dev/berth/internal/contract/aks/decode"
	"github.com/berth-dev/berth/internal/contract/osc"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/identity"
	"github.com/berth-dev/berth/internal/provision"
)

// tctx is for looking at machines, where no test's context is at hand.
var tctx = context.Background()

// scenario is a machine, and the configuration to apply to it.
type scenario struct {
	name    string
	machine func() *memory.Host
	config  *configuration
	// restarts are the jobs of an undisturbed run.
	restarts []string
}

// units are those whose state counts.
var units = []string{"containerd.service", "kubelet.service"}

// allUnits are those, the one of another contract and the SSH server.
var allUnits = append([]string{"shipper.service", sshUnit}, units...)

func scenarios(t testing.TB) []scenario {
	t.Helper()
	full := configure(t, "full.json")
	network := full.with(t, bridged)
	kubeletOnly, both := full.with(t, changeKubelet), full.with(t, changeKubelet, changeRuntime)
	return []scenario{
		{"prebaked image", prebaked, full, []string{"restart containerd.service", "start kubelet.service"}},
		{"bare image", bare, full.with(t, download), []string{"start containerd.service", "start kubelet.service"}},
		{"outdated image", outdated, full.with(t, download), []string{"start containerd.service", "start kubelet.service"}},
		{"image of packages", packed, full.with(t, unpack), []string{"start containerd.service", "start kubelet.service"}},
		{"shared image", sharing(outdated, full.with(t, download)), full.with(t, download), []string{"start containerd.service", "start kubelet.service"}},
		{"ledger lost", forgetful(applied(outdated, full.with(t, download))), full.with(t, download), []string{}},
		{"changed for kubelet", applied(prebaked, full), kubeletOnly, []string{"restart kubelet.service"}},
		{"changed labels", applied(prebaked, full), full.with(t, changeLabels), []string{}},
		{"joins with its old Node", returning(prebaked), full, []string{"restart containerd.service", "start kubelet.service"}},
		{"with swap", applied(prebaked, full), full.with(t, addSwap), []string{}},
		{"swap is withdrawn", applied(prebaked, full.with(t, addSwap)), full, []string{}},
		{"server and pod network", openedUp(applied(serving(prebaked), network.before())), network, []string{"reload ssh.service", "restart kubelet.service"}},
		{"changed for both", applied(prebaked, full), both, []string{"restart containerd.service", "restart kubelet.service"}},
	}
}

// applied is a machine that has been a node for a while.
func applied(machine func() *memory.Host, c *configuration) func() *memory.Host {
	return func() *memory.Host {
		h := machine()
		if _, err := engine(h, nil, 1).Apply(tctx, c.state(h)); err != nil {
			panic(err)
		}
		h.Flush()
		h.Advance(time.Minute)
		return h
	}
}

// returning is a machine that was a node of the cluster, which has its Node still.
func returning(machine func() *memory.Host) func() *memory.Host {
	return func() *memory.Host {
		h := machine()
		h.Put(nodeObject, labelText(map[string]string{"kubernetes.azure.com/mode": "user", "theirs": "1"}), 0o600)
		h.Flush()
		return h
	}
}

// configuration is a document with the states that it means, by facts: one
// machine may show other facts after it was furnished. Without a document nothing
// is wanted any more.
type configuration struct {
	doc *aks.Document
	// osc is a document of the other contract.
	osc *osc.Document
	// more is what no document of AKS has.
	more []desired.Resource
	// old is what an earlier version made of the document.
	old    bool
	states sync.Map
}

func configure(t testing.TB, name string) *configuration {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "contract", "aks", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := aks.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	// The lab runs that on a real node; here every unit costs each mutation a run.
	doc.Config.LocalDnsProfile, doc.Config.LinuxAdminUsername, doc.Config.CustomSearchDomainConfig = nil, "", nil
	// The image has no such services.
	doc.Config.EnableArtifactStreaming = false
	// The machine has no GPU.
	doc.Config.GpuConfig = nil
	// A run does without it: it fails nothing, and is asked for by the next.
	doc.Config.KubeProxyUrl = ""
	// Only the scenarios that are about it make swap files: they cost each machine.
	doc.Config.CustomLinuxOsConfig.EnableSwapConfig = false
	// An image's own containerd and runc count; download and unpack bring others.
	doc.Config.ContainerdConfig.ContainerdPackageUrl, doc.Config.RuncConfig.RuncPackageUrl = "", ""
	doc.Config.ContainerdConfig.ContainerdDownloadUrlBase = ""
	return &configuration{doc: doc}
}

// before is what an earlier version made of the same document.
func (c *configuration) before() *configuration { return &configuration{doc: c.doc, old: true} }

func (c *configuration) with(t testing.TB, edits ...func(*aksnodeconfigv1.Configuration)) *configuration {
	t.Helper()
	cfg := proto.CloneOf(c.doc.Config)
	for _, edit := range edits {
		edit(cfg)
	}
	if errs := decode.Validate(cfg); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return &configuration{doc: &aks.Document{Config: cfg}}
}

// state translates as each run does: from the facts that the machine shows now.
func (c *configuration) state(h host.Host) *desired.State {
	if c.doc == nil && c.osc == nil {
		return &desired.State{Owner: desired.OwnerAKS}
	}
	facts, err := provision.Gather(tctx, h, provision.FactsSource{Version: fetcher{}.Version,
		Cloud: func(context.Context) azure.Cloud { return azure.Cloud{Address: "10.99.0.11"} }})
	if err != nil {
		panic(err)
	}
	key := fmt.Sprint(facts)
	if st, ok := c.states.Load(key); ok {
		return st.(*desired.State)
	}
	st, err := c.translate(facts)
	if err != nil {
		panic(err)
	}
	c.states.Store(key, st)
	return st
}

func (c *configuration) translate(f component.Facts) (*desired.State, error) {
	if c.osc != nil {
		return osc.Translate(c.osc, f)
	}
	st, err := aks.Translate(c.doc, f)
	if err == nil && c.old {
		return earlier(st)
	}
	if err != nil || len(c.more) == 0 {
		return st, err
	}
	st.Add(c.more...)
	return st, st.Seal()
}

// contracts are scenarios of the other contract: a program out of an image, and
// containerd beside the configuration that is there.
func contracts(t testing.TB) []scenario {
	t.Helper()
	const runtime = `
  criConfig: {name: containerd, cgroupDriver: systemd, containerd: {sandboxImage: pause, registries: [{upstream: docker.io, server: "https://a.example"}]}}
  units: [{name: containerd.service, filePaths: [/var/lib/ca/ROOTcerts.crt]}]
  files: [{path: /var/lib/ca/ROOTcerts.crt, permissions: 420, content: {inline: {data: CA}}}]
`
	const program = `
  units:
  - name: shipper.service
    content: "[Service]\nExecStart=/opt/bin/shipper --v=2\n[Install]\nWantedBy=multi-user.target\n"
    dropIns: [{name: 10-nice.conf, content: "[Service]\nNice=5\n"}]
    filePaths: [/opt/bin/shipper, /etc/shipper/config]
  files:
  - {path: /etc/shipper/config, permissions: 416, content: {inline: {data: "to: loki"}}}
  - {path: /opt/bin/shipper, permissions: 493, content: {imageRef: {image: "a.example/shipper:TAG", filePathInImage: /shipper}}}
`
	tagged := func(tag string) *configuration { return clustered(t, strings.Replace(program, "TAG", tag, 1)) }
	return []scenario{
		{"another contract", prebaked, tagged("v1"), []string{"start shipper.service"}},
		{"another image", applied(prebaked, tagged("v1")), tagged("v2"), []string{"restart shipper.service"}},
		{"its containerd", prebaked, clustered(t, runtime), []string{"restart containerd.service"}},
	}
}

// clustered is a machine as a cluster manager wants it.
func clustered(t testing.TB, spec string) *configuration {
	t.Helper()
	doc, err := osc.Decode([]byte("apiVersion: extensions.gardener.cloud/v1alpha1\nkind: OperatingSystemConfig\nspec:" + spec))
	if err != nil {
		t.Fatal(err)
	}
	return &configuration{osc: doc}
}

// engine has all providers. Its choice among ready actions follows from pick;
// without one the first is taken.
func engine(h host.Host, pick func(int) int, workers int) *converge.Engine {
	return engineWith(h, func(o *converge.Options) { o.Pick, o.Workers = pick, workers })
}

func engineWith(h host.Host, edit func(*converge.Options)) *converge.Engine {
	o := converge.Options{Host: h, Providers: converge.Providers{Fetcher: fetcher{}, Issuer: newIssuer(h), Prober: prober{}, Images: images{h}, Nodes: nodes{h, new(sync.Mutex)},
		SelfSigned: selfSigned, ServingValid: identity.ServingValid}, Workers: 1, Command: "test", LockTimeout: time.Second}
	edit(&o)
	return converge.New(o)
}

// run applies with one worker and an order that follows from a fixed seed.
func (s scenario) run(h *memory.Host, on host.Host) (*converge.Result, error) {
	return engine(on, rand.New(rand.NewPCG(7, 1)).IntN, 1).Apply(tctx, s.config.state(h))
}

// outcome is what must not depend on faults.
type outcome struct {
	Tree  map[string]string
	Units map[string]string
	Jobs  []string
}

const (
	ledgerFile = "/var/lib/berth/ledger.json"
	originals  = "/var/lib/berth/originals"
)

// mark is that of a download: its size, and when it was written.
var mark = regexp.MustCompile(`("mark": "\d+):\d+`)

// registration is what kubelet goes by only where it creates its Node.
var registration = regexp.MustCompile(`(?m)^KUBELET_NODE_LABELS=.*\n`)

// entries is the ledger as it reads: how a run came to its end is not part of it.
func entries(h *memory.Host) string {
	led, err := new(ledger.Reader).Load(h)
	check(err)
	for name, e := range led.Entries {
		e.Seen = "" // noted at the end of a run alone
		led.Entries[name] = e
	}
	text, err := json.MarshalIndent(led.Entries, "", " ")
	check(err)
	return mark.ReplaceAllString(string(text), "$1")
}

// look describes a machine: the tree without what stamps say, since invocation
// ids count starts, without times, and the state of each unit with what it runs
// with.
func look(h *memory.Host) outcome {
	o := outcome{Tree: h.Tree(), Units: map[string]string{}, Jobs: withoutRepeats(jobs(h))}
	for path := range o.Tree {
		if strings.HasPrefix(path, "/run/berth/units/") {
			o.Tree[path] = "a stamp"
		}
	}
	o.Tree[ledgerFile] = entries(h)
	delete(o.Tree, "/var/lib/berth/ended")
	last := map[string]memory.Job{}
	for _, j := range h.Jobs() {
		last[j.Unit] = j
	}
	for _, name := range allUnits {
		st, err := h.Unit(tctx, name)
		if err != nil {
			panic(err)
		}
		o.Units[name] = fmt.Sprint(st.ActiveState, " ", last[name].Definition, registration.ReplaceAllString(fmt.Sprint(last[name].Reads), ""))
	}
	for key, value := range h.Values() {
		o.Units[key] = value
	}
	table, err := h.FilterTable(tctx, packetfilter.Table)
	check(err)
	o.Units["packet filter"] = fmt.Sprintf("%+v", table)
	return o
}

// jobs are what happened to the units of a node, in order.
func jobs(h *memory.Host) []string {
	var out []string
	for _, j := range h.Jobs() {
		if slices.Contains(allUnits, j.Unit) {
			out = append(out, j.String())
		}
	}
	return out
}

// withoutRepeats leaves out that a unit reloads what it has reloaded just before: that it did, a
// run can't see which follows one that was killed right after that.
func withoutRepeats(jobs []string) []string {
	var out []string
	last := map[string]string{}
	for _, job := range jobs {
		verb, unit, _ := strings.Cut(job, " ")
		if verb != "reload" || last[unit] != verb {
			out = append(out, job)
		}
		last[unit] = verb
	}
	return out
}

// allJobs are what happened to all units.
func allJobs(h *memory.Host) []string {
	var out []string
	for _, j := range h.Jobs() {
		out = append(out, j.String())
	}
	return out
}

// afterBoot leaves out what a boot resets: /run, and how often units started.
func (o outcome) afterBoot() outcome {
	tree := maps.Clone(o.Tree)
	maps.DeleteFunc(tree, func(path, _ string) bool { return path == "/run" || strings.HasPrefix(path, "/run/") })
	return outcome{Tree: tree, Units: o.Units}
}

// diff names what differs, "" if nothing does.
func diff(want, got outcome) string {
	out := append(differences(want.Tree, got.Tree), differences(want.Units, got.Units)...)
	if !slices.Equal(want.Jobs, got.Jobs) {
		out = append(out, fmt.Sprintf("jobs %q, want %q", got.Jobs, want.Jobs))
	}
	return strings.Join(out, "\n")
}

func differences(want, got map[string]string) []string {
	if maps.Equal(want, got) {
		return nil
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if have, ok := got[key]; !ok {
			out = append(out, key+" is missing")
		} else if have != want[key] {
			out = append(out, key+" (-want +got): "+cmp.Diff(want[key], have))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			out = append(out, key+" is left")
		}
	}
	return out
}

// history is an undisturbed run: what it makes, and its effects in order.
type history struct {
	outcome
	effects []effect.Recorded
}

func (s scenario) undisturbed(t testing.TB) history {
	t.Helper()
	h := s.machine()
	before, rec := len(jobs(h)), effect.Record(h)
	if _, err := s.run(h, rec); err != nil {
		t.Fatal(err)
	}
	got := history{look(h), rec.Effects()}
	if d := cmp.Diff(s.restarts, append([]string{}, jobs(h)[before:]...)); d != "" {
		t.Fatal(d)
	}
	return got
}

// stop is a machine whose run has stopped after an effect.
type stop struct {
	effect.Effect
	machine *memory.Host
}

// stops are the machines that a run leaves which stops after an effect: of each, in thorough
// mode.
func (s scenario) stops(t testing.TB) <-chan stop {
	t.Helper()
	h, out := s.machine(), make(chan stop)
	told := func(e effect.Effect) {
		if (e.N-1)%stride != 0 {
			return
		}
		select {
		case out <- stop{e, furnished(h)}:
		case <-t.Context().Done():
		}
	}
	go func() {
		defer close(out)
		if _, err := s.run(h, effect.After(h, told)); err != nil {
			t.Error(err)
		}
	}()
	return out
}

// disturb runs an apply that a fault hits.
func (s scenario) disturb(t testing.TB, h *memory.Host, plan effect.Plan) {
	t.Helper()
	in := effect.Inject(h, plan)
	if _, err := s.run(h, in); in.Hit() == nil {
		t.Fatalf("no fault took place: %v", err)
	}
}

// again runs the apply to its end, and plans to see that nothing is left.
func (s scenario) again(t testing.TB, h *memory.Host) {
	t.Helper()
	if _, err := s.run(h, h); err != nil {
		t.Fatalf("the run after the fault: %v", err)
	}
	s.converged(t, h)
}

func (s scenario) converged(t testing.TB, h *memory.Host) {
	t.Helper()
	if got := s.plan(t, h); len(got) > 0 {
		t.Fatalf("still planned: %v", got)
	}
}

// plan is what would be done: "verb id".
func (s scenario) plan(t testing.TB, h *memory.Host) []string {
	t.Helper()
	p, err := engine(h, nil, 1).Plan(tctx, s.config.state(h))
	if err != nil {
		t.Fatal(err)
	}
	return lines(p)
}

func lines(p *converge.Plan) []string {
	out := []string{}
	for _, a := range p.Actions {
		out = append(out, string(a.Verb)+" "+string(a.ID))
	}
	return out
}

// each runs a property for every scenario of the first contract, in parallel.
func each(t *testing.T, property func(t *testing.T, s scenario)) { every(t, scenarios(t), property) }

// eachOfAll runs one for those of all contracts.
func eachOfAll(t *testing.T, property func(t *testing.T, s scenario)) {
	every(t, append(scenarios(t), contracts(t)...), property)
}

func every(t *testing.T, all []scenario, property func(t *testing.T, s scenario)) {
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.machine = copied(s.machine)
			property(t, s)
		})
	}
}
