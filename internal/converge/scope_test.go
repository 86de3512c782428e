package converge_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
)

// looked notes which paths are described or read.
type looked struct {
	host.Host
	at map[string]bool
}

func (l *looked) Lstat(p string) (host.Info, error) { l.at[p] = true; return l.Host.Lstat(p) }
func (l *looked) ReadFile(p string) ([]byte, error) { l.at[p] = true; return l.Host.ReadFile(p) }
func (l *looked) Open(p string) (host.ReadFile, error) {
	l.at[p] = true
	return l.Host.Open(p)
}

func (l *looked) Unit(ctx context.Context, name string) (host.UnitStatus, error) {
	l.at[name] = true
	return l.Host.Unit(ctx, name)
}

// changedNode is a small node on which everything was changed by somebody.
func changedNode(t *testing.T) (*machine, *desired.State) {
	t.Helper()
	h := newMachine()
	st := func(more ...desired.Resource) *desired.State {
		return sealed(t, append(more,
			managed("/etc/a", "a\n"), managed("/etc/b", "b\n"),
			&desired.Directory{Path: "/etc/private", Mode: 0o700}, managed("/etc/private/c", "c\n"),
			managed("/etc/containerd/config.toml", "version = 3\n"),
			managed("/etc/systemd/system/containerd.service.d/x.conf", "[Service]\nNice=1\n"),
			started("containerd.service", "/etc/containerd/config.toml"))...)
	}
	runs(t, h, st(managed("/etc/gone", "1\n"), managed("/etc/gone2", "2\n")))
	for _, p := range []string{"/etc/a", "/etc/b", "/etc/containerd/config.toml", "/etc/systemd/system/containerd.service.d/x.conf"} {
		h.Put(p, "[Service]\n# drift\n", 0o644)
	}
	must(h.Remove("/etc/private/c"))
	must(h.Remove("/etc/private"))
	h.ForgetJobs()
	return h, st()
}

// A scope changes what is in it, and reads no more than that and what it can't be
// compared without.
func TestScope(t *testing.T) {
	for name, c := range map[string]struct {
		ids          []desired.ID
		plan         []string
		unread, jobs string
	}{
		"a file":             {ids: []desired.ID{"file:/etc/a"}, plan: []string{"update file:/etc/a"}, unread: "/etc/b /etc/gone containerd.service"},
		"a file below":       {ids: []desired.ID{"file:/etc/private/c"}, plan: []string{"create directory:/etc/private", "create file:/etc/private/c"}, unread: "/etc/a /etc/b"},
		"no longer wanted":   {ids: []desired.ID{"/etc/gone"}, plan: []string{"delete file:/etc/gone"}, unread: "/etc/a /etc/gone2"},
		"by the file's id":   {ids: []desired.ID{"file:/etc/gone"}, plan: []string{"delete file:/etc/gone"}, unread: "/etc/a /etc/gone2"},
		"a unit":             {ids: []desired.ID{"unit:containerd.service"}, plan: []string{"update file:/etc/containerd/config.toml", "update file:/etc/systemd/system/containerd.service.d/x.conf"}, unread: "/etc/a /etc/b /etc/gone"},
		"nothing":            {ids: []desired.ID{}, plan: []string{}, unread: "/etc/a /etc/b /etc/gone containerd.service"},
		"nobody knows of it": {ids: []desired.ID{"file:/etc/other"}, plan: []string{}, unread: "/etc/a /etc/b /etc/gone"},
	} {
		t.Run(name, func(t *testing.T) {
			h, st := changedNode(t)
			l := &looked{Host: h, at: map[string]bool{}}
			res, err := engine(l, &providers{}).ApplyScope(t.Context(), st, converge.Scope{IDs: c.ids})
			must(err)
			got := []string{}
			for _, v := range verbs(res.Plan) {
				if !strings.HasPrefix(v, "reload ") { // systemd reads its definitions
					got = append(got, v)
				}
			}
			if diff := cmp.Diff(c.plan, got); diff != "" {
				t.Error(diff)
			}
			for _, p := range strings.Fields(c.unread) {
				if l.at[p] {
					t.Errorf("looked at %s", p)
				}
			}
			if got := joinJobs(h); got != c.jobs {
				t.Errorf("jobs %q", got)
			}
			again, err := engine(h, &providers{}).PlanScope(t.Context(), st, converge.Scope{IDs: c.ids})
			if err != nil || !again.Empty() {
				t.Errorf("again: %v, %v", verbs(again), err)
			}
			// The rest is still seen, and a whole run ends with nothing to do.
			runs(t, h, st)
			converged(t, h, st)
		})
	}
}

// What was decided not to be done is not done, and nothing follows from it.
func TestDecisions(t *testing.T) {
	h, st := changedNode(t)
	before := tree(h, "/etc")
	decide := func(a converge.Action) converge.Decision {
		switch {
		case strings.HasSuffix(string(a.ID), "/etc/a"), strings.HasSuffix(string(a.ID), "config.toml"):
			return converge.Report
		case strings.HasPrefix(string(a.ID), "unit:"), strings.HasSuffix(string(a.ID), "gone"):
			return converge.Skip
		}
		return converge.Do
	}
	// Somebody starts containerd with what he put there: with that it stays.
	must(h.DaemonReload(tctx))
	must(h.RestartUnit(tctx, "containerd.service"))
	h.ForgetJobs()
	res, err := engine(h, &providers{}).ApplyScope(t.Context(), st, converge.Scope{Decide: decide})
	must(err)
	reported := verbs(&converge.Plan{Actions: res.Plan.Reported})
	slices.Sort(reported)
	if diff := cmp.Diff([]string{"update file:/etc/a", "update file:/etc/containerd/config.toml"}, reported); diff != "" {
		t.Error(diff)
	}
	for _, a := range res.Plan.Actions {
		if decide(a) != converge.Do {
			t.Errorf("planned: %s %s", a.Verb, a.ID)
		}
	}
	after := tree(h, "/etc")
	for _, p := range []string{"/etc/a", "/etc/containerd/config.toml", "/etc/gone"} {
		if before[p] != after[p] {
			t.Errorf("%s: %s", p, cmp.Diff(before[p], after[p]))
		}
	}
	has(t, h, "/etc/b", "b\n")
	has(t, h, "/etc/private/c", "c\n")
	if _, err := h.Lstat("/etc/gone2"); err == nil {
		t.Error("/etc/gone2 is there")
	}
	if got := joinJobs(h); got != "" {
		t.Errorf("jobs %q", got)
	}
	runs(t, h, st)
	converged(t, h, st)
	has(t, h, "/etc/a", "a\n")
	if _, err := h.Lstat("/etc/gone"); err == nil {
		t.Error("/etc/gone is there")
	}
}

// A transient file whose end was put off does not go.
func TestWithheldCredential(t *testing.T) {
	h := newMachine()
	st := sampleState(t)
	_, err := engine(h, &providers{}).ApplyScope(t.Context(), st, converge.Scope{Decide: func(a converge.Action) converge.Decision {
		if strings.HasPrefix(string(a.ID), "credential:") {
			return converge.Report
		}
		return converge.Do
	}})
	must(err)
	if _, err := h.Lstat(bootstrap); err != nil {
		t.Error(err)
	}
}

// Killed anywhere, a run of a part leaves what a whole run completes.
func TestScopeIsKilled(t *testing.T) {
	n := 1
	for hit := true; hit; n++ {
		h, st := changedNode(t)
		in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
		_, _ = engine(in, &providers{}).ApplyScope(t.Context(), st, converge.Scope{IDs: []desired.ID{"unit:containerd.service", "/etc/gone"}})
		hit = in.Hit() != nil
		h.Kill()
		// What comes next asks for a part, too: the one that was cut off comes first.
		res, err := engine(h, &providers{}).ApplyScope(t.Context(), st, converge.Scope{IDs: []desired.ID{"file:/etc/a"}})
		if err != nil {
			t.Fatalf("stopped at %d: %v", n, err)
		}
		if res.Resumed {
			converged(t, h, st)
		}
		runs(t, h, st)
		converged(t, h, st)
	}
	if n < 20 {
		t.Errorf("only %d effects", n)
	}
}

// TestReady: who is asked before the first change finds all staged and nothing changed; a
// refusal leaves the machine as it was, and owes nothing.
func TestReady(t *testing.T) {
	h := newMachine()
	st := sealed(t, managed("/etc/x/a", "a\n"), started("containerd.service", "/etc/x/a"))
	before, asked, refusal := others(h), 0, errors.New("not any more")
	ready := func() error {
		asked++
		if _, err := h.Lstat("/etc/x/a"); !errors.Is(err, fs.ErrNotExist) || joinJobs(h) != "" {
			t.Errorf("changed already: %v, %s", err, joinJobs(h))
		}
		if _, err := h.Lstat(host.TempName("/etc/x/a")); err != nil {
			t.Errorf("not staged: %v", err)
		}
		return refusal
	}
	if _, err := fetching(h).ApplyScope(t.Context(), st, converge.Scope{Ready: ready}); !errors.Is(err, refusal) {
		t.Errorf("refused: %v", err)
	}
	if d := cmp.Diff(before, others(h)); d != "" || joinJobs(h) != "" {
		t.Errorf("refused, but %s%s", joinJobs(h), d)
	}
	refusal = nil
	res, err := fetching(h).ApplyScope(t.Context(), st, converge.Scope{Ready: ready})
	if err != nil || res.Resumed || asked != 2 {
		t.Errorf("asked %d times: %v, resumed %v", asked, err, res.Resumed)
	}
	converged(t, h, st)
	if _, err := fetching(h).ApplyScope(t.Context(), st, converge.Scope{Ready: ready}); err != nil || asked != 2 {
		t.Errorf("asked for nothing, or %v", err)
	}
}

// TestWithheldInput: a unit is not started anew for a file that is left as somebody else made
// it. When the file is back it is, unless it is known to run with what is back.
func TestWithheldInput(t *testing.T) {
	const unit = "/etc/systemd/system/w.service"
	const stamped, booted, restarted, editedFirst = "stamped", "after a boot", "restarted with it", "booted with it"
	for _, name := range []string{stamped, booted, restarted, editedFirst} {
		for _, edited := range []string{flagsFile, unit} {
			t.Run(name+", "+edited, func(t *testing.T) {
				h := newMachine()
				st := sealed(t, managed(unit, "[Service]\nExecStart=/usr/bin/containerd\n[Install]\nWantedBy=multi-user.target\n"), managed(flagsFile, "A=1\n"), started("w.service", flagsFile))
				runs(t, h, st)
				edit := func() {
					h.Advance(time.Minute)
					h.Put(edited, "[Service]\nExecStart=/usr/bin/containerd\n# theirs\n", 0o644)
				}
				if name == editedFirst {
					edit()
				}
				if name == booted || name == editedFirst {
					h.Flush()
					h.PowerCut(1)
					h.Boot()
					must(h.StartUnit(t.Context(), "w.service"))
				}
				if name != editedFirst {
					edit()
				}
				if name == restarted {
					must(h.DaemonReload(t.Context()))
					must(h.RestartUnit(t.Context(), "w.service"))
				}
				h.ForgetJobs()
				for range 2 {
					_, err := engine(h, &providers{}).ApplyScope(t.Context(), st, converge.Scope{Decide: func(a converge.Action) converge.Decision {
						if a.ID == desired.FileID(edited) {
							return converge.Report
						}
						return converge.Do
					}})
					if jobs := h.Jobs(); err != nil || len(jobs) > 0 {
						t.Fatalf("jobs %v, %v", jobs, err)
					}
				}
				// Without a stamp the time alone tells.
				if restarts := slices.Contains(verbs(runs(t, h, st)), "restart unit:w.service"); restarts != (name != stamped) {
					t.Errorf("the unit is restarted: %v", restarts)
				}
				converged(t, h, st)
			})
		}
	}
}
