package unitcheck

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// server has a Node and applies patches of its conditions.
type server struct {
	node    *apiserver.Latest[core.Node]
	patches []core.NodeCondition
	fault   atomic.Pointer[error]
}

func (s *server) PatchNodeStatus(_ context.Context, name string, patch []byte) (*core.Node, error) {
	if f := s.fault.Load(); f != nil {
		return nil, *f
	}
	var p core.Node
	if err := json.Unmarshal(patch, &p); err != nil || name != "n1" || len(p.Status.Conditions) != 1 {
		return nil, errors.New("bad patch")
	}
	s.patches = append(s.patches, p.Status.Conditions[0])
	s.node.Set(nodeWith(p.Status.Conditions[0]))
	return nil, nil
}

func nodeWith(c ...core.NodeCondition) *core.Node {
	return &core.Node{ObjectMeta: meta.ObjectMeta{Name: "n1"}, Status: core.NodeStatus{Conditions: c}}
}

func machine(t *testing.T) *memory.Host {
	t.Helper()
	h := memory.New()
	h.Program("/usr/bin/a", func(host.Command) host.Output { return host.Output{} })
	for _, name := range []string{"a.service", `dev-disk-by\x2dlabel.service`} {
		h.Put("/etc/systemd/system/"+name, "[Service]\nExecStart=/usr/bin/a\n", 0o644)
		if err := h.StartUnit(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func run(t *testing.T, systemd Systemd, try func(*server, chan struct{})) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &server{node: &apiserver.Latest[core.Node]{}}
		now := make(chan struct{})
		c := &Check{Systemd: systemd, Calls: s, Node: s.node, Every: time.Minute, Stuck: 5 * time.Minute, Refresh: 5 * time.Minute, Now: now,
			Units: func() []Unit {
				return []Unit{{Name: "a.service", Enable: &yes}, {Name: `dev-disk-by\x2dlabel.service`, Enable: &yes}}
			}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		synctest.Wait()
		try(s, now)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestTheConditionIsWrittenOnChangeAndNowAndThen(t *testing.T) {
	h := machine(t)
	run(t, h, func(s *server, now chan struct{}) {
		pass(time.Hour)
		if len(s.patches) > 0 {
			t.Errorf("written without a Node: %+v", s.patches)
		}
		s.node.Set(nodeWith())
		pass(time.Hour)
		if got := len(s.patches); got != 12 || s.patches[11].Reason != reasonHealthy {
			t.Errorf("%d writes in an hour: %+v", got, s.patches)
		}
		if first, last := s.patches[0], s.patches[11]; !first.LastTransitionTime.Equal(&last.LastTransitionTime) || !first.LastHeartbeatTime.Before(&last.LastHeartbeatTime) {
			t.Errorf("%+v, then %+v", first, last)
		}
		if err := h.StopUnit(t.Context(), "a.service"); err != nil {
			t.Fatal(err)
		}
		before := len(s.patches)
		now <- struct{}{}
		synctest.Wait()
		if got := s.patches[len(s.patches)-1]; len(s.patches) != before+1 || got.Status != core.ConditionFalse || got.Message != "a.service is inactive (dead)" ||
			!got.LastTransitionTime.Equal(&got.LastHeartbeatTime) {
			t.Errorf("%+v", got)
		}
	})
}

func TestADocumentWithoutUnitsHasAllWell(t *testing.T) {
	s := &server{node: &apiserver.Latest[core.Node]{}}
	s.node.Set(nodeWith(core.NodeCondition{Type: ConditionType, Status: core.ConditionFalse, Reason: reasonUnhealthy}))
	var units []Unit
	c := &Check{Systemd: machine(t), Calls: s, Node: s.node, Units: func() []Unit { return units }}
	for _, want := range []int{0, 1} {
		if err := c.look(t.Context()); err != nil || len(s.patches) != want {
			t.Fatalf("%v, %d writes, want %d", err, len(s.patches), want)
		}
		units = []Unit{}
	}
	if got := s.patches[0]; got.Status != core.ConditionTrue || got.Reason != reasonHealthy {
		t.Errorf("%+v", got)
	}
}

func TestAConditionThatAnotherChangedIsWrittenAgain(t *testing.T) {
	run(t, machine(t), func(s *server, now chan struct{}) {
		s.node.Set(nodeWith())
		pass(90 * time.Second)
		s.node.Set(nodeWith(core.NodeCondition{Type: ConditionType, Status: core.ConditionUnknown}))
		now <- struct{}{}
		synctest.Wait()
		if len(s.patches) != 2 {
			t.Errorf("%+v", s.patches)
		}
	})
}

func TestAnAPIServerThatIsAwayIsAskedAgain(t *testing.T) {
	run(t, machine(t), func(s *server, _ chan struct{}) {
		away := errors.New("connection refused")
		s.fault.Store(&away)
		s.node.Set(nodeWith())
		pass(10 * time.Minute)
		s.fault.Store(nil)
		pass(time.Minute)
		if len(s.patches) != 1 {
			t.Errorf("%+v", s.patches)
		}
	})
}

// slow is a systemd with a unit that starts for ever, and that is away at times.
type slow struct {
	*memory.Host
	away atomic.Bool
}

func (s *slow) ListUnits(ctx context.Context, patterns ...string) ([]host.UnitStatus, error) {
	if s.away.Load() {
		return nil, host.ErrNoSystemd
	}
	list, err := s.Host.ListUnits(ctx, patterns...)
	for i := range list {
		if list[i].Name == "a.service" {
			list[i].ActiveState = "activating"
		}
	}
	return list, err
}

func (s *slow) Unit(ctx context.Context, name string) (host.UnitStatus, error) {
	u, err := s.Host.Unit(ctx, name)
	if name == "a.service" {
		u.ActiveState, u.SubState = "activating", "start"
	}
	return u, err
}

func TestAUnitThatStartsForTooLongIsStuck(t *testing.T) {
	systemd := &slow{Host: machine(t)}
	run(t, systemd, func(s *server, _ chan struct{}) {
		s.node.Set(nodeWith())
		pass(4 * time.Minute)
		systemd.away.Store(true)
		pass(90 * time.Second)
		systemd.away.Store(false)
		var reasons []string
		pass(4 * time.Minute)
		for _, p := range s.patches {
			reasons = append(reasons, string(p.Status)+" "+p.Reason)
		}
		if got := strings.Join(reasons, ", "); got != "True ProgressingUnits, False UnhealthyUnits" {
			t.Error(got)
		}
	})
}

// pass lets time pass, and all that is due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
