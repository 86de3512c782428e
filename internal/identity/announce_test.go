package identity

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// A Node is created in this run or it is not: who was there before, and whoever else shapes
// what kubelet would register, has it otherwise.
func TestAnnounceSaysWhetherItCreated(t *testing.T) {
	certificate, key, err := SelfSigned([]string{"n1"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		status  int
		reason  string
		others  bool
		created bool
		fails   bool
		asked   int
	}{
		"created":          {status: http.StatusCreated, created: true, asked: 1},
		"there already":    {status: http.StatusConflict, reason: "AlreadyExists", asked: 1},
		"refused":          {status: http.StatusForbidden, reason: "Forbidden", fails: true, asked: 1},
		"others configure": {status: http.StatusCreated, others: true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				w.Header().Set("Content-Type", "application/json")
				if r.Method != http.MethodPost || r.URL.Path != "/api/v1/nodes" {
					t.Errorf("%s %s", r.Method, r.URL)
				}
				if tc.reason != "" {
					answer(w, tc.status, tc.reason)
					return
				}
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(`{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1"}}`))
			}))
			defer s.Close()
			h := memory.New()
			const dir = "/etc/kubernetes/kubelet.conf.d"
			if tc.others {
				h.Put(dir+"/10.conf", "", 0o644)
			}
			c := &desired.ClientCertificate{NodeName: "n1", Server: s.URL, Announce: &desired.Node{Unless: dir},
				CA: string(pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: s.Certificate().Raw}))}
			created, err := New(h).Announce(t.Context(), c, converge.Credential{Certificate: certificate, Key: key})
			if created != tc.created || (err != nil) != tc.fails || asked != tc.asked {
				t.Errorf("created %t, %v, asked %d times", created, err, asked)
			}
		})
	}
}

// kubelet reports a Node that became ready at once only where it finds a Ready condition.
func TestAnnouncedNodeIsNotReadyYet(t *testing.T) {
	now := time.Date(2026, 11, 1, 2, 3, 4, 0, time.UTC)
	n := nodeObject(&desired.ClientCertificate{NodeName: "n1", Announce: &desired.Node{}}, now)
	if len(n.Status.Conditions) != 1 {
		t.Fatalf("conditions %v", n.Status.Conditions)
	}
	c := n.Status.Conditions[0]
	if c.Type != core.NodeReady || c.Status != core.ConditionFalse || c.Reason == "" || c.Message == "" ||
		!c.LastHeartbeatTime.Time.Equal(now) || !c.LastTransitionTime.Time.Equal(now) {
		t.Errorf("condition %+v", c)
	}
}
