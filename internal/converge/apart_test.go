package converge_test

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

var errAway = errors.New("no route to host")

// joinable is a node that asks for its API server until it has a credential.
func joinable(t *testing.T) *desired.State {
	return sampleState(t, func(st *desired.State) {
		st.Resources[0].(*desired.Check).Unless = desired.ClientCertificateID(kubeconfig)
	})
}

func joined(t *testing.T) *memory.Host {
	h := newMachine()
	runs(t, h, joinable(t))
	h.Flush()
	return h
}

// A machine that has joined does not ask whether the API server answers.
func TestCheckOfJoinedMachine(t *testing.T) {
	h := joined(t)
	h.Put("/etc/kubernetes/azure.json", "edited", 0o600)
	must(h.StopUnit(tctx, "kubelet.service"))
	p := &providers{probe: errAway}
	res, err := engine(h, p).Apply(t.Context(), joinable(t))
	if err != nil || p.probes > 0 {
		t.Fatalf("%v, %d probes", err, p.probes)
	}
	if d := cmp.Diff([]string{"update file:/etc/kubernetes/azure.json", "start unit:kubelet.service"}, verbs(res.Plan)); d != "" {
		t.Error(d)
	}
	must(h.Remove("/var/lib/berth/ledger.json")) // then nothing says that it has joined
	if _, err := engine(h, p).Apply(t.Context(), joinable(t)); !errors.Is(err, errAway) || p.probes != 1 {
		t.Errorf("%v, %d probes", err, p.probes)
	}
}

// Where such a machine needs a new credential, what needs none comes first: an API
// server that is away holds up only that and kubelet, which comes after it.
func TestLocalRepairComesFirst(t *testing.T) {
	broken := func() *memory.Host {
		h := joined(t)
		h.Put("/etc/kubernetes/azure.json", "edited", 0o600)
		h.Put("/etc/default/kubelet", "A=2\n", 0o600)
		must(h.StopUnit(tctx, "containerd.service"))
		must(h.Remove(kubeconfig))
		return h
	}
	want := []string{"start unit:containerd.service", "issue credential:/var/lib/kubelet/kubeconfig", "update file:/etc/default/kubelet", "update file:/etc/kubernetes/azure.json", "restart unit:kubelet.service"}
	slices.Sort(want)
	h := broken()
	kubelet := h.Units()["kubelet.service"].InvocationID
	res, err := engine(h, &providers{probe: errAway}).Apply(t.Context(), joinable(t))
	if !errors.Is(err, errAway) {
		t.Fatal(err)
	}
	got := verbs(res.Plan)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	has(t, h, "/etc/kubernetes/azure.json", "{}")
	has(t, h, "/etc/default/kubelet", "A=1\n")
	units := h.Units()
	if units["containerd.service"].ActiveState != "active" || units["kubelet.service"].InvocationID != kubelet {
		t.Errorf("containerd is %s, kubelet %s, was %s", units["containerd.service"].ActiveState, units["kubelet.service"].InvocationID, kubelet)
	}
	if !slices.ContainsFunc(res.Timeline, func(s converge.Span) bool { return s.ID == desired.CheckID(desired.CheckAPIServer) && s.Error != "" }) {
		t.Error("the timeline does not tell of the check")
	}
	runs(t, h, joinable(t))
	converged(t, h, joinable(t))
	after := others(h)
	for n, hit := 1, true; hit; n++ {
		h := broken()
		in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
		_, _ = engine(in, &providers{}).Apply(t.Context(), joinable(t))
		hit = in.Hit() != nil
		h.Kill()
		runs(t, h, joinable(t))
		converged(t, h, joinable(t))
		if d := cmp.Diff(after, others(h)); d != "" {
			t.Fatalf("killed at effect %d: %s", n, d)
		}
	}
}

// A machine that has not joined does all or nothing, also where a run that was to
// join it was killed, and where its disk is a copy of one that has.
func TestFirstJoinIsWhole(t *testing.T) {
	clone := joined(t)
	other := sampleState(t, func(st *desired.State) {
		st.Resources[1].(*desired.ClientCertificate).NodeName = "n2"
		st.Add(managed("/etc/kubernetes/more", "m"))
	})
	must(clone.Remove(kubeconfig))
	for name, c := range map[string]struct {
		h *memory.Host
		s *desired.State
	}{"new": {newMachine(), joinable(t)}, "copy": {clone, other}} {
		t.Run(name, func(t *testing.T) { nothingComes(t, c.h, c.s) })
	}
	for n := 1; ; n++ {
		h := newMachine()
		_, _ = engine(effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}}), &providers{}).Apply(t.Context(), joinable(t))
		h.Kill()
		if h.Tree("/var/lib/kubelet/pki")["/var/lib/kubelet/pki/kubelet-client-berth.pem"] != "" || t.Failed() {
			break // from here on it may have joined
		}
		t.Run(fmt.Sprintf("killed at effect %d", n), func(t *testing.T) { nothingComes(t, h, joinable(t)) })
	}
}

func nothingComes(t *testing.T, h *memory.Host, s *desired.State) {
	before := others(h)
	if _, err := engine(h, &providers{probe: errAway}).Apply(t.Context(), s); !errors.Is(err, errAway) {
		t.Fatal(err)
	}
	after := others(h)
	for _, tree := range []map[string]string{before, after} {
		maps.DeleteFunc(tree, func(p, _ string) bool { return strings.Contains(p, "/.berth.") }) // a killed run's are cleared
	}
	if d := cmp.Diff(before, after); d != "" {
		t.Error(d)
	}
}

// What waits is not berth's yet: an edit that it would replace is kept, and comes back.
func TestWaitingFileIsNotOursYet(t *testing.T) {
	h := joined(t)
	const p, theirs = "/etc/kubernetes/more", "theirs\n"
	h.Put(p, theirs, 0o644)
	must(h.Remove(kubeconfig))
	h.Put("/etc/default/kubelet", "A=2\n", 0o600)
	more := sampleState(t, func(st *desired.State) {
		st.Resources[0].(*desired.Check).Unless = desired.ClientCertificateID(kubeconfig)
		f := managed(p, "ours\n")
		f.After = []desired.ID{desired.ClientCertificateID(kubeconfig)}
		st.Add(f)
	})
	if _, err := engine(h, &providers{probe: errAway}).Apply(t.Context(), more); !errors.Is(err, errAway) {
		t.Fatal(err)
	}
	has(t, h, "/etc/default/kubelet", "A=1\n")
	has(t, h, p, theirs)
	runs(t, h, more)
	has(t, h, p, "ours\n")
	runs(t, h, joinable(t))
	has(t, h, p, theirs)
}

// A unit that reads what waits is started anew when that has come, and not before.
func TestUnitOfAWaitingFile(t *testing.T) {
	const p = "/etc/containerd/registry.conf"
	state := func(text string, also ...desired.Resource) *desired.State {
		return sampleState(t, func(st *desired.State) {
			st.Resources[0].(*desired.Check).Unless = desired.ClientCertificateID(kubeconfig)
			f := managed(p, text)
			f.After = []desired.ID{desired.ClientCertificateID(kubeconfig)}
			st.Add(f)
			st.Add(also...)
			for _, r := range st.Resources {
				if u, ok := r.(*desired.Unit); ok && u.Name == "containerd.service" {
					u.Triggers = append(u.Triggers, p)
				}
			}
		})
	}
	h := newMachine()
	runs(t, h, state("1\n"))
	h.Flush()
	must(h.Remove(kubeconfig))
	h.Put("/etc/default/kubelet", "A=2\n", 0o600)
	h.ForgetJobs()
	if _, err := engine(h, &providers{probe: errAway}).Apply(t.Context(), state("2\n")); !errors.Is(err, errAway) {
		t.Fatal(err)
	}
	has(t, h, "/etc/default/kubelet", "A=1\n")
	has(t, h, p, "1\n")
	if got := joinJobs(h); got != "" {
		t.Errorf("it was started anew for what has not come: %q", got)
	}
	runs(t, h, state("2\n"))
	has(t, h, p, "2\n")
	if got := joinJobs(h); !strings.Contains(got, "restart containerd.service") {
		t.Errorf("what has come starts nothing anew: %q", got)
	}
	converged(t, h, state("2\n"))
}

// A directory that what waits and what does not are both in is made by whoever comes first.
func TestApartMakesItsDirectories(t *testing.T) {
	h := newMachine()
	const extra = "/var/lib/kubelet/pki/extra"
	s := sampleState(t, func(st *desired.State) { st.Add(managed(extra, "x\n")) })
	applied := func() error {
		_, err := engine(h, &providers{}).Apply(t.Context(), s)
		return err
	}
	must(applied())
	for _, name := range []string{"kubelet-client-current.pem", "kubelet-client-berth.pem", "extra", ""} {
		must(h.Remove(path.Join("/var/lib/kubelet/pki", name)))
	}
	h.Advance(time.Minute)
	if err := applied(); err != nil {
		t.Fatal(err)
	}
	has(t, h, extra, "x\n")
	if p, err := engine(h, &providers{}).Plan(t.Context(), s); err != nil || !p.Empty() {
		t.Errorf("%v, still planned: %v", err, verbs(p))
	}
}
