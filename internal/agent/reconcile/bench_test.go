package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/selfupdate"
	"github.com/berth-dev/berth/internal/agent/status"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// bench is a machine in memory, an API server of one Node, and a reconciler. A
// document is lines: "node", "file PATH TEXT", "unit NAME TRIGGER", "template NAME", "refused".
type bench struct {
	t *testing.T
	h *memory.Host
	// engineHost is the machine as engines see it; nil is h.
	engineHost host.Host
	options    config.Options
	own        []string
	owners     []desired.Owner
	delay      time.Duration
	paused     time.Time
	turn       bool
	// inLine: who asks for the turn gets it a moment later; held: it has it.
	inLine, held bool
	// asked is how often the turn was asked for.
	asked int
	// lasts ends when the turn is lost; nil is a turn that is not.
	lasts context.Context
	lost  func()
	// opening, if set, is called while a document is opened.
	opening func(context.Context)
	away    bool // no document can be opened
	// unwritable: nothing can be written to the Node.
	unwritable bool
	unwatched  bool // nothing can be watched
	unrecorded bool // the record can't be written
	// ahead is what /etc/a held when a document was about to change something.
	ahead []string
	// forbidden is a label that the API server refuses.
	forbidden string
	forbade   int

	mu         sync.Mutex
	node       *core.Node
	events     []string
	conditions []string
	types      []core.NodeConditionType
	unfollowed int
	patches    int
	released   int
	joined     int
	opened     int
	counts     status.Counts

	// onTrial, ends and updateError are how an update of the agent goes.
	onTrial, ends bool
	// ownState is what the agent's own files are to be.
	ownState *desired.State
	// formerFails is how often the former agent's document can't be opened.
	formerFails     int
	updateError     error
	proofs, updates int
	// fetching, if set, is called while the agent of a document is fetched; placed is how
	// often one was put in place.
	fetching func()
	placed   int

	r    *Reconciler
	stop func()
}

const unitText = "[Service]\nExecStart=/bin/sleep 1\n[Install]\nWantedBy=multi-user.target\n"

func newBench(t *testing.T) *bench {
	t.Helper()
	o, err := config.ParseOptions("x", nil)
	if err != nil {
		t.Fatal(err)
	}
	h := memory.New()
	h.PutDir("/run/berth")
	h.Put("/usr/bin/sleep", "program", 0o755)
	return &bench{t: t, h: h, owners: []desired.Owner{desired.OwnerOSC, desired.OwnerNode}, options: *o, turn: true, node: &core.Node{ObjectMeta: apimeta.ObjectMeta{Name: "n"}}}
}

// start runs a reconciler as a new process would.
func (b *bench) start() {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	b.r = New(Options{
		Host: watched{b.h, b}, Opener: b, Owners: b.owners, Record: RecordPath, Published: true, Turns: b, Self: b, Node: b, Events: b, Drift: b.options.Drift, Own: b.own, SyncPeriod: 10 * time.Minute,
		Delay: func(string) time.Duration { return b.delay }, Labels: func(*Target) map[string]string { return map[string]string{"l": "v", "m": "w"} },
		Paused: func() time.Time { return b.paused }, Joined: func() error { b.joined++; return nil },
		Release: func(int) {}, Count: b.counts.Add, Ahead: func(context.Context, *desired.State) { b.ahead = append(b.ahead, b.content("/etc/a")) },
		Explain: func(err error) (string, string, string) { return "ERR", err.Error(), "do it" },
		Log:     slog.New(slog.DiscardHandler),
	})
	done := make(chan error, 1)
	go func() { done <- b.r.Run(ctx) }()
	b.stop = func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
		synctest.Wait()
	}
	synctest.Wait()
}

// watched is the machine with a watch and a record that may fail.
type watched struct {
	*memory.Host
	b *bench
}

// Watch implements host.Watcher.
func (w watched) Watch(ctx context.Context, what host.Watched) (<-chan host.Event, error) {
	w.b.mu.Lock()
	unwatched := w.b.unwatched
	w.b.mu.Unlock()
	if unwatched {
		return nil, errors.New("no more watches")
	}
	return w.Host.Watch(ctx, what)
}

// Create implements host.FS.
func (w watched) Create(p string) (host.File, error) {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	if w.b.unrecorded {
		return nil, syscall.ENOSPC
	}
	return w.Host.Create(p)
}

// give puts a document into the Secret and waits until all is quiet.
func (b *bench) give(lines ...string) {
	b.r.SeeSecret(secretOf(lines...))
	synctest.Wait()
}

func secretOf(lines ...string) *core.Secret {
	text := strings.Join(lines, "\n")
	return &core.Secret{ObjectMeta: apimeta.ObjectMeta{Annotations: map[string]string{ChecksumAnnotation: "sum of " + text}}, Data: map[string][]byte{DataKey: []byte(text)}}
}

// serial is a Secret of a pool that goes one after another.
func serial(lines ...string) *core.Secret {
	s := secretOf(lines...)
	s.Annotations[SerialAnnotation] = "true"
	return s
}

// others brings the machine to what another contract asks for.
func (b *bench) others(rs ...desired.Resource) {
	b.t.Helper()
	st := &desired.State{Owner: desired.OwnerAKS}
	st.Add(rs...)
	if err := st.Seal(); err != nil {
		b.t.Fatal(err)
	}
	if _, err := converge.New(converge.Options{Host: b.h, Command: "test", Workers: 1}).Apply(b.t.Context(), st); err != nil {
		b.t.Fatal(err)
	}
}

// pass lets time go by, on the machine's clock and on the program's.
func (b *bench) pass(d time.Duration) {
	b.h.Advance(d)
	time.Sleep(d)
	synctest.Wait()
}

func (b *bench) content(p string) string {
	text, err := b.h.ReadFile(p)
	if errors.Is(err, fs.ErrNotExist) {
		return "absent"
	}
	return string(text)
}

func (b *bench) wantFile(p, want string) {
	b.t.Helper()
	if got := b.content(p); got != want {
		b.t.Errorf("%s is %q, want %q", p, got, want)
	}
}

func (b *bench) wantApplied(lines ...string) {
	b.t.Helper()
	if got, want := b.node.Annotations[AppliedAnnotation], "sum of "+strings.Join(lines, "\n"); got != want {
		b.t.Errorf("annotation %q, want %q", got, want)
	}
}

// setNode changes the Node behind the reconciler's back.
func (b *bench) setNode(n *core.Node) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.node = n
}

// set arranges something while the reconciler runs.
func (b *bench) set(what *bool, to bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*what = to
}

func (b *bench) count(reason string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, e := range b.events {
		if strings.HasPrefix(e, reason+" ") {
			n++
		}
	}
	return n
}

// Open implements Opener.
func (b *bench) Open(ctx context.Context, d *Document) (*Target, error) {
	b.opened++
	if b.opening != nil {
		b.opening(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away {
		return nil, errors.New("away")
	}
	st, err := state(d.Text)
	if err != nil {
		return nil, &RefusedError{err}
	}
	return b.target(d, st), nil
}

// Owner implements Opener.
func (b *bench) Owner(d *Document) desired.Owner { return ownerOf(d.Text) }

// ownerOf: a document whose first line is "node" is a NodeConfig, one of "aks" is AKS'.
func ownerOf(text []byte) desired.Owner {
	switch {
	case strings.HasPrefix(string(text), "node\n"):
		return desired.OwnerNode
	case strings.HasPrefix(string(text), "aks\n"):
		return desired.OwnerAKS
	}
	return desired.OwnerOSC
}

// LastGood implements Opener.
func (b *bench) LastGood(_ context.Context, owner desired.Owner) (*Target, error) {
	kept, err := trial.Good(b.h, owner)
	if err != nil || kept == nil {
		return nil, err
	}
	st, err := translated(kept)
	return b.target(DocumentOf(kept.Document), st), err
}

// translated is the state of a kept contract. Its facts, if it has any, are other lines that
// count in the place of the document's.
func translated(kept *trial.Contract) (*desired.State, error) {
	text := ""
	if json.Unmarshal(kept.Facts, &text) != nil {
		text = string(kept.Document)
	}
	return state([]byte(text))
}

// Former implements Opener.
func (b *bench) Former(_ context.Context, d *Document) (*Target, error) {
	if b.formerFails > 0 {
		b.formerFails--
		return nil, errors.New("not now")
	}
	st, err := state(d.Text)
	if err != nil {
		return nil, &RefusedError{err}
	}
	return b.target(d, st), nil
}

func (b *bench) target(d *Document, st *desired.State) *Target {
	return &Target{Document: d, State: st, Agent: agentOf(d.Text), Engine: b.engine(d.Text, 0), Notes: notesOf(d.Text)}
}

func notesOf(document []byte) []string {
	var out []string
	for line := range strings.Lines(string(document)) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "note "); ok {
			out = append(out, text+" has no effect")
		}
	}
	return out
}

func agentOf(document []byte) *selfupdate.Parts {
	if !strings.Contains(string(document), "agent ") {
		return nil
	}
	return &selfupdate.Parts{}
}

func state(document []byte) (*desired.State, error) {
	st := &desired.State{Owner: ownerOf(document)}
	for line := range strings.Lines(string(document)) {
		f := strings.Fields(line)
		switch {
		case len(f) == 3 && f[0] == "file":
			st.Add(&desired.File{Path: f[1], Content: desired.Text(f[2]), Mode: 0o644, Life: desired.Managed})
		case len(f) == 3 && f[0] == "unit":
			def := &desired.File{Path: "/etc/systemd/system/" + f[1], Content: desired.Text(unitText), Mode: 0o644, Life: desired.Managed}
			u := &desired.Unit{Name: f[1], Enablement: desired.Enabled, Activation: desired.Started, Triggers: []string{f[2]}}
			u.After = []desired.ID{def.ID(), desired.FileID(f[2])}
			st.Add(def, u)
		case len(f) == 2 && f[0] == "template":
			def := &desired.File{Path: "/etc/systemd/system/" + f[1], Content: desired.Text(unitText), Mode: 0o644, Life: desired.Managed}
			u := &desired.Unit{Name: f[1], Enablement: desired.Enabled}
			u.After = []desired.ID{def.ID()}
			st.Add(def, u)
		case len(f) > 1 && (f[0] == "agent" || f[0] == "note"), len(f) == 1 && (f[0] == "node" || f[0] == "aks"):
		default:
			return nil, fmt.Errorf("no such line: %s", line)
		}
	}
	return st, st.Seal()
}

// Acquire implements Turns.
func (b *bench) Acquire(ctx context.Context) context.Context {
	b.asked++
	switch {
	case b.inLine && !b.held:
		b.held = true
		go b.r.Again()
		return nil
	case !b.turn:
		return nil
	case b.lasts != nil:
		return b.lasts
	}
	return ctx
}

// Release implements Turns.
func (b *bench) Release(context.Context) error { b.released++; b.held = false; return nil }

// OnTrial, Prove, Claim and Update implement SelfUpdate: a document says in a line
// "agent NAME" what agent it wants.
func (b *bench) OnTrial(context.Context) (bool, error) { return b.onTrial, nil }

// Own implements SelfUpdate.
func (b *bench) Own() (*desired.State, error) {
	if b.ownState == nil || b.isOnTrial() {
		return nil, nil
	}
	return b.ownState, nil
}

// Repair implements SelfUpdate.
func (b *bench) Repair(ctx context.Context, st *desired.State, s converge.Scope) (*converge.Result, error) {
	return converge.New(converge.Options{Host: b.h, Command: "test", Workers: 1}).ApplyScope(ctx, st, s)
}

// Prove implements SelfUpdate.
func (b *bench) Prove(context.Context) error { b.onTrial = false; b.proofs++; return nil }

// Claim implements SelfUpdate.
func (b *bench) Claim(context.Context, *selfupdate.Parts) error { return nil }

// Update implements SelfUpdate.
func (b *bench) Update(_ context.Context, p *selfupdate.Parts, _ string, ready func() error) (bool, error) {
	if p == nil {
		return false, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.updates++
	if b.updateError != nil {
		return false, b.updateError
	}
	if b.fetching != nil {
		b.fetching()
	}
	if err := ready(); err != nil {
		return false, err
	}
	b.placed++
	return b.ends, nil
}

// updateFails has the next updates end with err.
func (b *bench) updateFails(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.updateError = err
}

// Get implements Node.
func (b *bench) Get() *core.Node {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.node.DeepCopy()
}

// Patch implements Node.
func (b *bench) Patch(_ context.Context, labels, annotations map[string]string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unwritable {
		return errors.New("away")
	}
	b.patches++
	if _, ok := labels[b.forbidden]; ok {
		b.forbade++
		return fmt.Errorf("patch: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n", errors.New("policy")))
	}
	for _, m := range []struct {
		to   *map[string]string
		from map[string]string
	}{{&b.node.Labels, labels}, {&b.node.Annotations, annotations}} {
		if *m.to == nil {
			*m.to = map[string]string{}
		}
		maps.Copy(*m.to, m.from)
	}
	return nil
}

// Normal implements Recorder.
func (b *bench) Normal(reason, message string) { b.Warning(reason, message) }

// Warning implements Recorder.
func (b *bench) Warning(reason, message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, reason+" "+message)
}

// told are the events.
func (b *bench) told() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.events)
}

// Condition implements Node.
func (b *bench) Condition(_ context.Context, c core.NodeCondition) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.node == nil {
		return errors.New("no node")
	}
	if b.unwritable {
		return errors.New("away")
	}
	if c.Reason == "NotFollowed" { // of another kind than what is told
		b.unfollowed++
	} else {
		b.conditions = append(b.conditions, string(c.Status)+" "+c.Reason)
		b.types = append(b.types, c.Type)
	}
	b.node.Status.Conditions = append(slices.DeleteFunc(b.node.Status.Conditions, func(have core.NodeCondition) bool { return have.Type == c.Type }), c)
	return nil
}

func (b *bench) lastCondition() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.conditions) == 0 {
		return ""
	}
	return b.conditions[len(b.conditions)-1]
}

// message is that of the Node's condition.
func (b *bench) message() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.node.Status.Conditions {
		if c.Type == ConditionType {
			return c.Message
		}
	}
	return ""
}

func (b *bench) restarts(unit string) int {
	n := 0
	for _, j := range b.h.Jobs() {
		if j.Unit == unit && j.Verb != "stop" {
			n++
		}
	}
	return n
}
