package health

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/berth-dev/berth/internal/apiserver"
)

// status takes patches of a Node's status.
type status struct {
	given []string
	fault error
}

func (s *status) PatchNodeStatus(_ context.Context, name string, patch []byte) (*core.Node, error) {
	var p core.Node
	if err := json.Unmarshal(patch, &p); err != nil || name != "n1" {
		return nil, errors.New("bad patch")
	}
	for _, a := range p.Status.Addresses {
		s.given = append(s.given, string(a.Type)+" "+a.Address)
	}
	return nil, s.fault
}

func nodeAt(addresses ...string) *core.Node {
	n := &core.Node{ObjectMeta: meta.ObjectMeta{Name: "n1"}}
	for _, a := range addresses {
		kind, ip, _ := strings.Cut(a, " ")
		n.Status.Addresses = append(n.Status.Addresses, core.NodeAddress{Type: core.NodeAddressType(kind), Address: ip})
	}
	return n
}

func TestAddress(t *testing.T) {
	away := errors.New("connection refused")
	for name, tc := range map[string]struct {
		nodes    []*core.Node
		here     bool
		fault    error
		given    []string
		restarts int
	}{
		"kept":            {nodes: []*core.Node{nodeAt("InternalIP 10.0.0.1"), nodeAt("InternalIP 10.0.0.2")}, here: true},
		"lost":            {nodes: []*core.Node{nodeAt("InternalIP 10.0.0.1"), nil, nodeAt("Hostname n1")}, here: true, given: []string{"InternalIP 10.0.0.1"}},
		"external left":   {nodes: []*core.Node{nodeAt("InternalIP 10.0.0.1"), nodeAt("ExternalIP 1.2.3.4")}, here: true},
		"not here":        {nodes: []*core.Node{nodeAt("InternalIP 10.0.0.1"), nodeAt()}},
		"never had one":   {nodes: []*core.Node{nodeAt()}, here: true},
		"server away":     {nodes: []*core.Node{nodeAt("InternalIP 10.0.0.1"), nodeAt(), nodeAt()}, here: true, fault: away, given: []string{"InternalIP 10.0.0.1", "InternalIP 10.0.0.1"}, restarts: 1},
		"changed already": {nodes: []*core.Node{nodeAt("InternalIP 10.0.0.1"), nodeAt()}, here: true, fault: apierrors.NewConflict(schema.GroupResource{}, "n1", away), given: []string{"InternalIP 10.0.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, s, e := machine(t), &status{fault: tc.fault}, &events{}
				node := &apiserver.Latest[core.Node]{}
				a := &Address{Systemd: h, Calls: s, Events: e, Node: node, Kubelet: "kubelet.service", Here: func(string) bool { return tc.here }}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- a.Run(ctx) }()
				for _, n := range tc.nodes {
					node.Set(n)
					synctest.Wait()
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if d := cmp.Diff(tc.given, s.given); d != "" || len(h.Jobs()) != tc.restarts {
					t.Errorf("%d restarts; %s", len(h.Jobs()), d)
				}
				if want := len(tc.given) > 0 && !apierrors.IsConflict(tc.fault); (len(e.all()) > 0) != want {
					t.Errorf("told %q", e.all())
				}
			})
		})
	}
}

func TestOnInterface(t *testing.T) {
	if !onInterface("127.0.0.1") || onInterface("203.0.113.7") || onInterface("nothing") {
		t.Error("which addresses are here")
	}
}

func TestToggles(t *testing.T) {
	ready := func(s core.ConditionStatus) *core.Node {
		return &core.Node{Status: core.NodeStatus{Conditions: []core.NodeCondition{{Type: core.NodeReady, Status: s}}}}
	}
	for name, tc := range map[string]struct {
		pause time.Duration
		times int
		want  int
	}{
		"five within ten minutes": {time.Minute, 5, 1},
		"four":                    {time.Minute, 4, 0},
		"far apart":               {3 * time.Minute, 20, 0},
		"ten":                     {time.Minute, 10, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, node := &events{}, &apiserver.Latest[core.Node]{}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- (&Toggles{Events: e, Node: node}).Run(ctx) }()
				for range tc.times {
					for _, n := range []*core.Node{ready(core.ConditionUnknown), nil, ready(core.ConditionTrue), ready(core.ConditionTrue)} {
						node.Set(n)
						synctest.Wait()
					}
					time.Sleep(tc.pause)
				}
				cancel()
				if err := <-ended; err != nil || len(e.all()) != tc.want {
					t.Errorf("%v, told %q", err, e.all())
				}
			})
		})
	}
}
