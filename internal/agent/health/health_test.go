package health

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

type events struct {
	mu   sync.Mutex
	told []string
}

func (e *events) add(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, text)
}

func (e *events) Normal(_, message string)  { e.add(message) }
func (e *events) Warning(_, message string) { e.add(message) }

func (e *events) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.told...)
}

func machine(t *testing.T) *memory.Host {
	t.Helper()
	h := memory.New()
	h.Put("/etc/systemd/system/kubelet.service", "[Service]\nType=notify\nExecStart=/usr/bin/true\n", 0o644)
	h.Program("/usr/bin/true", func(host.Command) host.Output { return host.Output{} })
	if err := h.StartUnit(t.Context(), "kubelet.service"); err != nil {
		t.Fatal(err)
	}
	h.ForgetJobs()
	return h
}

// looked has kubelet looked after, well or not as sick says.
func looked(t *testing.T, arrange func(*memory.Host), try func(sick *atomic.Bool, p *Program, h *memory.Host)) []string {
	t.Helper()
	e := &events{}
	synctest.Test(t, func(t *testing.T) {
		h := machine(t)
		arrange(h)
		var sick atomic.Bool
		p := &Program{Systemd: h, Events: e, Name: "kubelet", Unit: "kubelet.service", Ask: func(context.Context) error {
			if sick.Load() {
				return errors.New("syncloop is dead")
			}
			return nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		sick.Store(true)
		go func() { ended <- Round{h, []*Program{p}}.Run(ctx) }()
		time.Sleep(time.Second)
		try(&sick, p, h)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return e.all()
}

func nothing(*memory.Host) {}

func TestAProgramThatIsUnwellIsRestarted(t *testing.T) {
	told := looked(t, nothing, func(sick *atomic.Bool, _ *Program, h *memory.Host) {
		time.Sleep(58 * time.Second)
		if len(h.Jobs()) > 0 {
			t.Error("restarted before a minute")
		}
		time.Sleep(2 * time.Second)
		if len(h.Jobs()) != 1 {
			t.Error("not restarted after a minute")
		}
		sick.Store(false)
		time.Sleep(time.Minute)
	})
	want := []string{"kubelet is not well: syncloop is dead",
		"restarted kubelet.service, which was not well for 1m0s: syncloop is dead", "kubelet is well again"}
	if d := cmp.Diff(want, told); d != "" {
		t.Error(d)
	}
}

func TestRestartsBecomeRare(t *testing.T) {
	looked(t, nothing, func(_ *atomic.Bool, _ *Program, h *memory.Host) {
		for range 240 {
			time.Sleep(30 * time.Second)
			h.Advance(30 * time.Second)
		}
		if got := len(h.Jobs()); got != 10 { // after 1 + 2 + 4 + 8 + 16 + 16 … minutes
			t.Errorf("%d restarts in two hours", got)
		}
	})
}

// A program that is well for a while after each restart is no less ill, until it is well for
// long.
func TestRestartsOfOneThatRelapsesBecomeRare(t *testing.T) {
	looked(t, nothing, func(sick *atomic.Bool, _ *Program, h *memory.Host) {
		relapse := func(d time.Duration) {
			for had, end := len(h.Jobs()), time.Now().Add(d); time.Now().Before(end); had = len(h.Jobs()) {
				time.Sleep(30 * time.Second)
				if len(h.Jobs()) > had {
					sick.Store(false)
					time.Sleep(time.Minute)
					sick.Store(true)
				}
			}
		}
		relapse(2 * time.Hour)
		if got := len(h.Jobs()); got != 9 { // after 1 + 2 + 4 + 8 + 16 + 16 … minutes, each with one in which it is well
			t.Errorf("%d restarts in two hours", got)
		}
		sick.Store(false)
		time.Sleep(lasting + every)
		sick.Store(true)
		before := len(h.Jobs())
		time.Sleep(patience + 2*every)
		if len(h.Jobs()) != before+1 {
			t.Error("restarted no sooner after it was well for long")
		}
	})
}

func TestAShortIllnessIsOnlyTold(t *testing.T) {
	told := looked(t, nothing, func(sick *atomic.Bool, _ *Program, h *memory.Host) {
		for range 10 {
			time.Sleep(45 * time.Second)
			sick.Store(!sick.Load())
		}
		if got := len(h.Jobs()); got > 0 {
			t.Errorf("%d restarts", got)
		}
	})
	if len(told) == 0 {
		t.Error("nothing was told")
	}
}

func TestAProgramThatNobodyExpectsIsLeftAlone(t *testing.T) {
	for name, arrange := range map[string]func(*memory.Host){
		"not installed": func(h *memory.Host) {
			_ = h.StopUnit(context.Background(), "kubelet.service")
			_ = h.Remove("/etc/systemd/system/kubelet.service")
			_ = h.DaemonReload(context.Background())
		},
		"stopped": func(h *memory.Host) { _ = h.StopUnit(context.Background(), "kubelet.service") },
		"on its start": func(h *memory.Host) {
			_ = h.StopUnit(context.Background(), "kubelet.service")
			h.Behave("kubelet.service", func(memory.Start) memory.Outcome { return memory.Outcome{Slow: true} })
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			_ = h.StartUnit(ctx, "kubelet.service")
		},
	} {
		t.Run(name, func(t *testing.T) {
			told := looked(t, func(h *memory.Host) { arrange(h); h.ForgetJobs() }, func(_ *atomic.Bool, _ *Program, h *memory.Host) {
				time.Sleep(time.Hour)
				if len(h.Jobs()) > 0 {
					t.Errorf("%v", h.Jobs())
				}
			})
			if len(told) > 0 {
				t.Errorf("told %q", told)
			}
		})
	}
}

// TestAProgramByAnAlias: systemd lists units by their real names.
func TestAProgramByAnAlias(t *testing.T) {
	told := looked(t, func(h *memory.Host) {
		_ = h.StopUnit(context.Background(), "kubelet.service")
		_ = h.Remove("/etc/systemd/system/kubelet.service")
		h.Put("/etc/systemd/system/node-kubelet.service", "[Service]\nType=notify\nExecStart=/usr/bin/true\n", 0o644)
		h.PutLink("node-kubelet.service", "/etc/systemd/system/kubelet.service", 0)
		_ = h.DaemonReload(context.Background())
		_ = h.StartUnit(context.Background(), "kubelet.service")
	}, func(*atomic.Bool, *Program, *memory.Host) { time.Sleep(time.Second) })
	if d := cmp.Diff([]string{"kubelet is not well: syncloop is dead"}, told); d != "" {
		t.Error(d)
	}
}

func TestAPauseLeavesAProgramAlone(t *testing.T) {
	e := &events{}
	synctest.Test(t, func(t *testing.T) {
		h := machine(t)
		p := &Program{Systemd: h, Events: e, Name: "kubelet", Unit: "kubelet.service",
			Ask: func(context.Context) error { return errors.New("dead") }, Paused: func() bool { return true }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := (Round{h, []*Program{p}}).Run(ctx); err != nil || len(h.Jobs()) > 0 {
			t.Errorf("%v, %v", err, h.Jobs())
		}
	})
	if d := cmp.Diff([]string{"kubelet is not well: dead"}, e.all()); d != "" {
		t.Error(d)
	}
}

func TestARestartThatFailsSaysSo(t *testing.T) {
	told := looked(t, func(h *memory.Host) {
		h.Behave("kubelet.service", func(memory.Start) memory.Outcome { return memory.Outcome{Status: 1} })
	}, func(*atomic.Bool, *Program, *memory.Host) { time.Sleep(time.Minute) })
	if len(told) != 2 || !strings.HasPrefix(told[1], "restart of kubelet.service failed: ") || !strings.Contains(told[1], "syncloop is dead") {
		t.Errorf("told %q", told)
	}
}

// TestARestartThatHangsKeepsNoOtherWaiting: each program of a round is looked after by
// itself.
func TestARestartThatHangsKeepsNoOtherWaiting(t *testing.T) {
	e := &events{}
	synctest.Test(t, func(t *testing.T) {
		h := machine(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute-time.Second)
		defer cancel()
		var asked atomic.Int64
		hangs := &Program{Systemd: h, Events: e, Name: "one", Unit: "kubelet.service", Ask: func(context.Context) error { <-ctx.Done(); return ctx.Err() }}
		well := &Program{Systemd: h, Events: e, Name: "two", Unit: "kubelet.service", Ask: func(context.Context) error { asked.Add(1); return nil }}
		if err := (Round{h, []*Program{hangs, well}}).Run(ctx); err != nil {
			t.Error(err)
		}
		if got := asked.Load(); got != 20 {
			t.Errorf("asked %d times in ten minutes, want 20", got)
		}
	})
}
