package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/provision"
	"github.com/berth-dev/berth/internal/report"
)

// joiner is a machine whose node becomes ready at once, unless a test says otherwise.
type joiner struct {
	*world
	said []string
	kept int
	// await stands in for the node, load for the document.
	await func(context.Context) error
	load  func(context.Context) (*Wanted, error)
}

func newJoiner(t *testing.T) *joiner {
	t.Helper()
	j := &joiner{world: newWorld(t), await: func(context.Context) error { return nil }}
	j.load = func(context.Context) (*Wanted, error) {
		st := &desired.State{Owner: desired.OwnerNode, Unhandled: []string{"agent.keep"}}
		st.Partial = []desired.FieldNote{{Path: "networking.clusterDNS", Reason: "it is not said"}}
		st.Add(
			&desired.File{Path: "/etc/systemd/system/kubelet.service", Content: desired.Text(service("/opt/bin/kubelet")), Mode: 0o644, Life: desired.Managed},
			&desired.File{Path: "/etc/default/kubelet", Content: desired.Text("FLAGS=--hostname-override=n1\n"), Mode: 0o644, Life: desired.Managed},
			&desired.Unit{Name: "kubelet.service", Activation: desired.Started},
		)
		return &Wanted{State: st, Server: "https://10.0.0.1:6443"}, st.Seal()
	}
	return j
}

func (j *joiner) join(edit ...func(*Setup)) (report.Join, error) {
	j.t.Helper()
	engine := func() *converge.Engine {
		return converge.New(converge.Options{Host: j.h, Command: "test", Workers: 1, LockTimeout: time.Second})
	}
	o := Setup{
		Host: j.h, Command: "berth join", Version: "v1", Start: j.m.Now(), WaitFor: provision.MilestoneReady, Timeout: time.Hour,
		Load:  func(ctx context.Context) (*Wanted, error) { return j.load(ctx) },
		Peers: func(context.Context, *Wanted) Peers { return Peers{} },
		Apply: func(ctx context.Context, st *desired.State) (*converge.Result, error) {
			return engine().Apply(ctx, st)
		},
		Keep:     func(context.Context, *desired.State) error { j.kept++; return nil },
		Stay:     func(context.Context, *Wanted) (*converge.Result, error) { return nil, nil },
		Remember: func(ctx context.Context, st *desired.State) error { return engine().Remember(ctx, st) },
		Await: func(ctx context.Context, _ *desired.State, to provision.Milestone, reached func(provision.Milestone)) error {
			err := j.await(ctx)
			if err == nil {
				reached(to)
			}
			return err
		},
		Classify: func(err error) int {
			if errors.Is(err, exitcode.ErrInterrupted) {
				return exitcode.CommandInterrupted
			}
			return exitcode.Failed
		},
		Say: func(line string) { j.said = append(j.said, line) },
	}
	for _, f := range edit {
		f(&o)
	}
	return Join(j.t.Context(), o)
}

// TestJoin: the milestones are told as they are true, the result is kept, a second run has
// nothing to do, and leave gives the machine back.
func TestJoin(t *testing.T) {
	j := newJoiner(t)
	r, err := j.join()
	if err != nil || r.Milestone != "ready" || r.Changes == 0 || r.Node != "n1" || r.Server != "https://10.0.0.1:6443" || r.ExitCode != 0 || r.Failure != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if diff := cmp.Diff([]string{"reached: applied", "reached: ready"}, j.said); diff != "" {
		t.Error(diff)
	}
	if len(r.Notes) != 1 || len(r.Unhandled) != 1 || j.kept != 1 || !j.active("kubelet.service") {
		t.Errorf("%+v, kept %d times", r, j.kept)
	}
	if r, err = j.join(); err != nil || r.Changes != 0 || r.Milestone != "ready" {
		t.Errorf("again: %+v, %v", r, err)
	}
	if saved := report.LoadJoin(j.m); saved == nil || cmp.Diff(r, *saved) != "" || !strings.Contains(saved.String(), "n1 is ready since") {
		t.Errorf("saved %+v", saved)
	}
	if out, err := j.leave(forced); err != nil || len(out.Stayed) > 0 {
		t.Errorf("leave: %+v, %v", out, err)
	}
	j.isAsBefore()
}

// TestJoinFails: whatever keeps it from the milestone has a code and a remedy, in what is
// returned and in what is kept, and nothing is called good.
func TestJoinFails(t *testing.T) {
	notReady := &apiserver.MilestoneError{Milestone: apiserver.MilestoneReady, Reason: apiserver.ReasonCNINotReady, Remedy: "install a CNI plugin"}
	for _, tc := range []struct {
		name      string
		edit      func(*joiner)
		code      int
		cause     string
		hint      string
		milestone string
		exit      int
		origin    bool // the machine is as it was
	}{
		{"the document", func(j *joiner) {
			j.load = func(context.Context) (*Wanted, error) { return nil, errors.New("refused") }
		}, exitcode.Internal, "refused", "", "", exitcode.Failed, true},
		{"the node", func(j *joiner) {
			j.await = func(context.Context) error { return notReady }
		}, exitcode.NotReady, "cni-not-ready", "install a CNI plugin", "applied", exitcode.Failed, false},
		{"the time", func(j *joiner) {
			j.await = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		}, exitcode.Timeout, "the time of --timeout 1h0m0s is over", "Run the same command again", "applied", exitcode.Failed, false},
		{"the way out", func(j *joiner) {
			j.m.Put(recordPath, `{"node":"n1"}`, 0o600)
		}, exitcode.Internal, "on its way out of a cluster", "berth leave --force", "", exitcode.Failed, false},
		{"a defect", func(j *joiner) {
			j.load = func(context.Context) (*Wanted, error) { panic("no") }
		}, exitcode.Internal, "no", "defect of berth", "", exitcode.Failed, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newJoiner(t)
				tc.edit(j)
				r, err := j.join()
				f := r.Failure
				if err == nil || f == nil || f.Code != tc.code || !strings.Contains(f.Cause, tc.cause) || !strings.Contains(f.Hint, tc.hint) || r.Milestone != tc.milestone || r.ExitCode != tc.exit {
					t.Errorf("%+v, failure %+v, %v", r, f, err)
				}
				if saved := report.LoadJoin(j.m); saved == nil || cmp.Diff(f, saved.Failure) != "" || !strings.Contains(saved.String(), f.Name) {
					t.Errorf("saved %+v", saved)
				}
				if j.kept != 0 {
					t.Error("it was called good")
				}
				if tc.origin {
					j.isAsBefore()
				}
			})
		})
	}
}

// TestJoinAsksAgainAsANode: what the cluster does not tell a stranger it is asked for
// once the machine is registered, and comes into force before the node counts as ready.
func TestJoinAsksAgainAsANode(t *testing.T) {
	j := newJoiner(t)
	loads, milestones := 0, []string{}
	load := j.load
	j.load = func(ctx context.Context) (*Wanted, error) {
		w, err := load(ctx)
		if err != nil {
			return nil, err
		}
		loads++
		w.Open = loads == 1
		if !w.Open {
			w.State = &desired.State{Owner: desired.OwnerNode, Resources: w.State.Resources}
			w.State.Add(&desired.File{Path: "/etc/dns", Content: desired.Text("10.96.0.10"), Mode: 0o644, Life: desired.Managed})
			err = w.State.Seal()
		}
		return w, err
	}
	r, err := j.join(func(o *Setup) {
		o.Await = func(_ context.Context, _ *desired.State, to provision.Milestone, reached func(provision.Milestone)) error {
			_, there := j.m.Lstat("/etc/dns")
			milestones = append(milestones, fmt.Sprintf("%s: %t", to, there == nil))
			reached(to)
			return nil
		}
	})
	if err != nil || r.Milestone != "ready" || len(r.Notes) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if diff := cmp.Diff([]string{"registered: false", "ready: true"}, milestones); diff != "" {
		t.Error(diff)
	}
}

// TestJoinAtOnce: of several that are started together one does the work, the others
// wait for it and find nothing to do.
func TestJoinAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJoiner(t)
		j.await = func(context.Context) error { time.Sleep(10 * time.Second); return nil }
		type outcome struct {
			changes int
			err     error
		}
		ended := make(chan outcome)
		for range 3 {
			go func() {
				r, err := j.join(func(o *Setup) { o.Say = func(string) {} })
				ended <- outcome{r.Changes, err}
			}()
		}
		var changed []int
		for range 3 {
			o := <-ended
			if o.err != nil {
				t.Error(o.err)
			}
			if o.changes > 0 {
				changed = append(changed, o.changes)
			}
		}
		if len(changed) != 1 {
			t.Errorf("changes of those that changed something: %v", changed)
		}
	})
}

// TestJoinWaitsForNobodyForever: a run that does not end keeps the next one from the
// machine, is named, and its result stays.
func TestJoinWaitsForNobodyForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJoiner(t)
		if _, err := j.m.Lock(t.Context(), "/run/berth/provision.lock", "berth leave (pid 7)"); err != nil {
			t.Fatal(err)
		}
		r, err := j.join()
		if e, ok := errors.AsType[*host.LockedError](err); !ok || e.Holder != "berth leave (pid 7)" || r.Failure.Code != exitcode.Locked {
			t.Errorf("%+v, %v", r.Failure, err)
		}
		if saved := report.LoadJoin(j.m); saved != nil {
			t.Errorf("saved %+v", saved)
		}
		j.isAsBefore()
	})
}

// TestJoinIsInterrupted: whoever is told to stop says so, and goes on the next time.
func TestJoinIsInterrupted(t *testing.T) {
	j := newJoiner(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	await := j.await
	j.await = func(context.Context) error { cancel(exitcode.ErrInterrupted); return ctx.Err() }
	_, err := j.join(func(o *Setup) {
		o.Await = func(_ context.Context, _ *desired.State, _ provision.Milestone, _ func(provision.Milestone)) error {
			return because(ctx, j.await(ctx))
		}
	})
	if !errors.Is(err, exitcode.ErrInterrupted) || j.kept != 0 {
		t.Errorf("%v", err)
	}
	j.await = await
	if r, err := j.join(); err != nil || r.Changes != 0 || r.Milestone != "ready" {
		t.Errorf("again: %+v, %v", r, err)
	}
}

// TestJoinKilledAnywhere: whatever a run was doing when it was killed, the next one ends
// it, and leave finds all that both did.
func TestJoinKilledAnywhere(t *testing.T) {
	for _, kind := range []effect.Kind{effect.StopBefore, effect.StopAfter} {
		for at := 1; ; at++ {
			j := newJoiner(t)
			injector := effect.Inject(j.m, effect.Plan{{At: at, Kind: kind}})
			j.h = injector
			_, _ = j.join()
			if injector.Hit() == nil {
				if at < 20 {
					t.Errorf("only %d effects", at)
				}
				break
			}
			j.h = j.m
			if r, err := j.join(); err != nil || r.Milestone != "ready" {
				t.Errorf("killed at %s: %+v, %v", injector.Hit(), r, err)
			}
			if r, err := j.join(); err != nil || r.Changes != 0 {
				t.Errorf("killed at %s, again: %+v, %v", injector.Hit(), r, err)
			}
			if out, err := j.leave(forced); err != nil || len(out.Stayed) > 0 {
				t.Errorf("killed at %s, leave: %+v, %v", injector.Hit(), out, err)
			}
			j.isAsBefore()
			if t.Failed() {
				t.Fatalf("killed at %s", injector.Hit())
			}
		}
	}
}

// TestJoinTellsWhatStayed: what nobody wants any more and berth does not take away makes
// exit code 4.
func TestJoinTellsWhatStayed(t *testing.T) {
	j := newJoiner(t)
	r, err := j.join(func(o *Setup) {
		o.Apply = func(context.Context, *desired.State) (*converge.Result, error) {
			return &converge.Result{Resumed: true, Unverified: []string{"runc"}, Plan: &converge.Plan{Kept: []string{"/etc/x"}, Remarks: []string{"a taint"}}}, nil
		}
	})
	if err != nil || r.ExitCode != exitcode.Kept || !r.Resumed || !slices.Equal(r.Unverified, []string{"runc"}) || !slices.Equal(r.Left, []string{"a taint"}) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestJoinThatIsNotKept: a result that can't be saved is a failure of the run, in what is
// returned, too.
func TestJoinThatIsNotKept(t *testing.T) {
	j := newJoiner(t)
	r, err := j.join(func(o *Setup) {
		o.Keep = func(context.Context, *desired.State) error { j.m.PutDir(report.JoinPath + "/x"); return nil }
	})
	if err == nil || r.ExitCode != exitcode.Failed || r.Failure == nil || !strings.Contains(r.Failure.Cause, "save the result") || r.Milestone != "ready" {
		t.Errorf("%+v, failure %+v, %v", r, r.Failure, err)
	}
}

// TestJoinStays: the agent comes when the node stands, what it changes is counted, and what
// keeps it out is a failure of the join.
func TestJoinStays(t *testing.T) {
	for name, tc := range map[string]struct {
		res     *converge.Result
		err     error
		changes int
		exit    int
	}{
		"it comes":      {&converge.Result{Plan: &converge.Plan{Actions: make([]converge.Action, 3)}}, nil, 3, 0},
		"it is there":   {nil, nil, 0, 0},
		"it is refused": {nil, errors.New("another agent"), 0, exitcode.Failed},
		"it went":       {&converge.Result{Plan: &converge.Plan{Kept: []string{"/x"}}}, nil, 0, exitcode.Kept},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJoiner(t)
			if _, err := j.join(); err != nil {
				t.Fatal(err)
			}
			kept := j.kept
			r, err := j.join(func(o *Setup) {
				o.Stay = func(context.Context, *Wanted) (*converge.Result, error) {
					if j.kept == kept {
						t.Error("before the node is known to be good")
					}
					return tc.res, tc.err
				}
			})
			if r.Changes != tc.changes || r.ExitCode != tc.exit || !errors.Is(err, tc.err) || r.Milestone != "ready" {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}
