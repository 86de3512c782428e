package provision

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
)

// run is one Provision on its way.
type run struct {
	Options
	instance string
	terms    contract.Terms
	log      *report.Log

	mu         sync.Mutex
	milestone  Milestone
	step       string // what the run itself did last
	state      *desired.State
	spans      []converge.Span
	unhandled  []string
	unverified []string
	doing      map[desired.ID]converge.Span
	// withdraw takes the notice of the run away.
	withdraw func()
	// synced is closed when syncRoot has ended; nil where it can do nothing.
	synced chan struct{}
}

func newRun(o Options) *run {
	if o.Say == nil {
		o.Say = func(string) {}
	}
	if o.Status == nil {
		o.Status = func(string) {}
	}
	return &run{
		Options: o, instance: InstanceID(o.Host), terms: terms(o.Host, o.Config),
		log: &report.Log{Logger: slog.New(slog.DiscardHandler)}, doing: map[desired.ID]converge.Span{},
	}
}

// terms are those of the document that the run reads; the defaults where it can't
// be read.
func terms(h host.FS, config string) contract.Terms {
	b, err := readConfig(h, config)
	if err != nil {
		b = nil
	}
	return contract.TermsOf(b)
}

func readConfig(h host.FS, config string) ([]byte, error) {
	f, err := h.Open(config)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return contract.Read(f)
}

// open starts the log and says that the run has started.
func (r *run) open() {
	log, err := report.OpenLog(r.Host, report.LogPath)
	r.log = log
	r.log.Info("provisioning starts", "command", r.Command, "version", r.Version, "instance", r.instance,
		"timeout", r.terms.Timeout.String(), "waitFor", string(r.WaitFor))
	if err != nil {
		r.log.Warn("no log file", "error", err)
	}
	if err := report.WriteEvents(r.Host, report.Starting(report.TaskProvision, r.Start)); err != nil {
		r.log.Warn("no event", "error", err)
	}
}

func (r *run) say(s string) { r.Say(s) }

// during is a step of the run itself: it notes when it was, and how it ended.
func (r *run) during(verb, what string, step func() error) error {
	s := converge.Span{ID: desired.ID(what), Verb: converge.Verb(verb), Phase: "wait", Start: r.Host.Now()}
	r.mu.Lock()
	r.doing[s.ID] = s
	r.step = verb + " " + what
	r.mu.Unlock()
	s.Error = "it panicked" // unless it returns
	defer func() {
		s.End = r.Host.Now()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.doing, s.ID)
		r.spans = append(r.spans, s)
	}()
	err := step()
	s.Error = ""
	if err != nil {
		s.Error = err.Error()
	}
	return err
}

// current is what is being done now, else what the run itself did last.
func (r *run) current() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var last converge.Span
	for _, s := range r.doing {
		if s.Start.After(last.Start) {
			last = s
		}
	}
	if last.ID == "" {
		return r.step
	}
	return fmt.Sprintf("%s %s", last.Verb, last.ID)
}

// reach notes a milestone.
func (r *run) reach(s Milestone) {
	r.mu.Lock()
	r.milestone = s
	r.mu.Unlock()
	r.log.Info("reached", "milestone", string(s))
	r.say("reached: " + string(s))
}

func (r *run) read() (doc contract.Contract, err error) {
	err = r.during("read", r.Config, func() (err error) {
		doc, err = r.decode()
		return err
	})
	return doc, err
}

func (r *run) decode() (contract.Contract, error) {
	b, err := readConfig(r.Host, r.Config)
	if err != nil {
		return nil, r.unreadable(err)
	}
	doc, err := r.Decode(b)
	if err != nil {
		return nil, err
	}
	if err := Takes(doc.Kind()); err != nil {
		return nil, err
	}
	for _, n := range doc.Notes() {
		r.log.Warn("tolerated", "field", n.Path, "reason", n.Reason)
	}
	return doc, nil
}

// Takes refuses documents that make a machine a node in another way.
func Takes(k contract.Kind) error {
	if k == contract.AKS {
		return nil
	}
	return &exitcode.Error{Number: exitcode.Internal, During: "read the configuration",
		Remedy: "berth apply makes the machine as this document says.",
		Err:    fmt.Errorf("the document is: %s, and provisioning takes an %s", k, contract.AKS)}
}

func (r *run) unreadable(err error) error {
	e := &exitcode.Error{Number: exitcode.Internal, During: "read the configuration", Err: err}
	if !is[*contract.TooLongError](err) {
		e.Remedy = "Check that cloud-init wrote " + r.Config + ": cloud-init status --long."
	}
	return e
}

func (r *run) translate(ctx context.Context, doc contract.Contract) (st *desired.State, err error) {
	err = r.during("translate", "the configuration", func() (err error) {
		st, err = r.stateOf(ctx, doc)
		return err
	})
	return st, err
}

func (r *run) stateOf(ctx context.Context, doc contract.Contract) (*desired.State, error) {
	facts, err := r.Facts(ctx, r.Host, r.observe)
	if err != nil {
		return nil, err
	}
	st, err := doc.Translate(facts)
	if err != nil {
		return nil, fmt.Errorf("translate the configuration: %w", err)
	}
	for _, n := range st.Unused {
		r.log.Info("has no effect", "field", n.Path, "reason", n.Reason)
	}
	for _, n := range st.Partial {
		r.log.Warn("in force in part", "field", n.Path, "reason", n.Reason)
	}
	for _, p := range st.Unhandled {
		r.log.Warn("not handled by this version", "field", p)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state, r.unhandled = st, st.Unhandled
	return st, nil
}

func (r *run) apply(ctx context.Context, st *desired.State) error {
	r.mu.Lock()
	r.step = "apply the configuration" // until the first action, and between two
	r.mu.Unlock()
	res, err := r.Apply(ctx, st, r.observe)
	err = WithUnitLog(ctx, r.Host, err)
	if res == nil {
		return err
	}
	r.mu.Lock()
	r.unverified = res.Unverified
	r.mu.Unlock()
	if res.Resumed {
		r.log.Info("went on where an earlier run was interrupted")
	}
	for _, u := range res.Unverified {
		r.log.Warn("came without a digest", "artifact", u)
	}
	if res.Plan != nil {
		for _, m := range slices.Concat(res.Plan.Remarks, res.Plan.Kept) {
			r.log.Warn("left alone", "remark", m)
		}
	}
	return err
}

// observe notes what is being done and what has been, and logs the latter. The
// notes are the timeline also of an apply that is given up and returns nothing.
func (r *run) observe(s converge.Span) {
	if r.Observer != nil {
		r.Observer(s)
	}
	key := desired.ID(s.Phase + " " + string(s.ID))
	r.mu.Lock()
	if s.End.IsZero() {
		r.doing[key] = s
	} else {
		delete(r.doing, key)
		r.spans = append(r.spans, s)
	}
	r.mu.Unlock()
	if s.End.IsZero() || s.Error == converge.GivenUp {
		return
	}
	attrs := []any{"id", string(s.ID), "phase", s.Phase, "ms", float64(s.End.Sub(s.Start).Round(100*time.Microsecond)) / 1e6}
	if s.Detail != "" {
		attrs = append(attrs, "detail", s.Detail)
	}
	if s.Error != "" {
		r.log.Error(string(s.Verb), append(attrs, "error", s.Error)...)
		return
	}
	r.log.Info(string(s.Verb), attrs...)
}
