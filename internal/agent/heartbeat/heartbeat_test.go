package heartbeat

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/internal/agent/leasetest"
	"github.com/berth-dev/berth/internal/apiserver"
)

func nodeOf(uid types.UID) *core.Node {
	return &core.Node{ObjectMeta: meta.ObjectMeta{Name: "n1", UID: uid}}
}

// beating is a heartbeat that runs until the bubble's test ends.
func beating(t *testing.T) (*leasetest.Server, *apiserver.Latest[core.Node]) {
	t.Helper()
	s, node := leasetest.New(), &apiserver.Latest[core.Node]{}
	h := &Heartbeat{Calls: s, Node: node, Renew: 40 * time.Second, Duration: 160 * time.Second}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- h.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s, node
}

func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, node := beating(t)
		node.Set(nil)
		time.Sleep(time.Hour)
		if s.Writes() > 0 {
			t.Error("a Lease without a Node")
		}
		node.Set(nodeOf("a"))
		time.Sleep(time.Second)
		first := time.Now()
		l, err := s.GetLease(t.Context(), "", "gardener-node-agent-n1")
		if err != nil {
			t.Fatal(err)
		}
		o := l.OwnerReferences[0]
		if l.Namespace != "kube-system" || *l.Spec.HolderIdentity != "gardener-node-agent-n1" || *l.Spec.LeaseDurationSeconds != 160 ||
			o.Kind != "Node" || o.Name != "n1" || o.UID != nodeOf("a").UID || !*o.Controller {
			t.Errorf("%+v", l)
		}
		time.Sleep(10 * time.Minute)
		l, _ = s.GetLease(t.Context(), "", "gardener-node-agent-n1")
		if got := s.Writes(); got != 16 || time.Since(l.Spec.RenewTime.Time) > 40*time.Second || l.Spec.AcquireTime.After(first) {
			t.Errorf("%d writes in 10 minutes, last %s ago", got, time.Since(l.Spec.RenewTime.Time))
		}
	})
}

func TestHeartbeatGoesOn(t *testing.T) {
	for name, trouble := range map[string]func(*leasetest.Server, *apiserver.Latest[core.Node]){
		"after the server was away": func(s *leasetest.Server, _ *apiserver.Latest[core.Node]) {
			s.Fail(errors.New("connection refused"))
			time.Sleep(time.Hour)
			s.Fail(nil)
		},
		"over another's write": func(s *leasetest.Server, _ *apiserver.Latest[core.Node]) {
			l, _ := s.GetLease(context.Background(), "", "gardener-node-agent-n1")
			l.Spec.RenewTime = nil
			_, _ = s.UpdateLease(context.Background(), l)
		},
		"where it was removed": func(s *leasetest.Server, _ *apiserver.Latest[core.Node]) { s.Remove("gardener-node-agent-n1") },
		"with another Node":    func(_ *leasetest.Server, n *apiserver.Latest[core.Node]) { n.Set(nodeOf("b")) },
		"after there was none": func(_ *leasetest.Server, n *apiserver.Latest[core.Node]) {
			n.Set(nil)
			time.Sleep(time.Hour)
			n.Set(nodeOf("a"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, node := beating(t)
				node.Set(nodeOf("a"))
				time.Sleep(time.Minute)
				trouble(s, node)
				time.Sleep(40 * time.Second)
				synctest.Wait()
				l, err := s.GetLease(t.Context(), "", "gardener-node-agent-n1")
				n, _ := node.Get()
				if err != nil || l.Spec.RenewTime == nil || time.Since(l.Spec.RenewTime.Time) > 40*time.Second || l.OwnerReferences[0].UID != n.UID {
					t.Errorf("%+v, %v", l, err)
				}
			})
		})
	}
}
