package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/identity"
)

// issuing is who issues certificates: what it answers, and when it was asked.
type issuing func() error

// IssueForAgent implements credential.Issuer.
func (i issuing) IssueForAgent(context.Context, identity.Agent, apiserver.Access) (converge.Credential, error) {
	return converge.Credential{}, i()
}

// TestWithoutACertificateItAsksOn: where the token has expired, or nobody approves, the
// agent stays, says why, asks after pauses that grow, and leaves kubelet's files alone.
func TestWithoutACertificateItAsksOn(t *testing.T) {
	for name, cause := range map[string]error{
		"expired token": &identity.Error{Reason: identity.ReasonUnauthorized, Node: "m1", Err: errors.New("Unauthorized")},
		"no approver":   &identity.Error{Reason: identity.ReasonPending, Node: "m1", Request: "node-agent-csr-x", Err: errors.New("not approved")},
	} {
		t.Run(name, func(t *testing.T) {
			h := machineWith(configText)
			h.Put(config.BootstrapToken, "abcdef.0123456789abcdef", 0o600)
			h.Put("/var/lib/kubelet/kubeconfig-real", "kubelet's", 0o600)
			before := h.Tree("/var/lib")
			ctx, cancel := context.WithCancel(t.Context())
			var asked []time.Duration
			began := h.Now()
			s, said := settingsOf(h), map[string]bool{}
			s.Issuer = issuing(func() error {
				if asked = append(asked, h.Now().Sub(began).Round(time.Second)); len(asked) == 12 {
					cancel()
				}
				return cause
			})
			s.Status = func(text string) { said[text] = true }
			a, err := New(s)
			if err != nil {
				t.Fatal(err)
			}
			if err := a.connect(ctx, new(errgroup.Group)); err != nil || len(asked) != 12 {
				t.Errorf("it ends after %d tries: %v", len(asked), err)
			}
			if spent := asked[11] - asked[0]; spent < 2*time.Minute || spent > 11*time.Minute {
				t.Errorf("asked at %v", asked)
			}
			if len(said) != 1 || !said["ERR: "+cause.Error()+" — do it"] {
				t.Errorf("said %v", said)
			}
			after := h.Tree("/var/lib")
			for p := range after {
				if strings.HasPrefix(p, "/var/lib/berth") {
					delete(after, p)
				}
			}
			if d := cmp.Diff(before, after); d != "" || len(h.Jobs()) > 0 {
				t.Errorf("touched: %v%s", h.Jobs(), d)
			}
		})
	}
}

// TestAnotherOutageIsTold: why an object can't be seen is told once as long as that lasts, and
// anew where it comes again, though its cause is the same.
func TestAnotherOutageIsTold(t *testing.T) {
	a := begin(t, machineWith(configText))
	synctest.Test(t, func(t *testing.T) {
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n1", errors.New("no rights"))
		told := said(t, a, func() {
			fail := a.away("Node")
			for range 2 {
				for range 20 { // as often as it is asked for
					fail(forbidden)
					time.Sleep(15 * time.Second)
				}
				time.Sleep(time.Hour)
			}
		})
		if len(told) != 2 {
			t.Errorf("told %q", told)
		}
	})
}

// TestTheDiskWaitsForNoCertificate: kubelet's data lies on it also after a start of the machine
// at which nobody gives the agent a certificate.
func TestTheDiskWaitsForNoCertificate(t *testing.T) {
	h := machineWith(configText + "bootstrap: {kubeletDataVolumeSize: 10737418240}\n")
	h.Put(config.BootstrapToken, "abcdef.0123456789abcdef", 0o600)
	s := settingsOf(h)
	s.Issuer = issuing(func() error { return errors.New("nobody approves") })
	a, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = a.reach(t.Context()) // the machine has no program that looks for disks
	if err == nil || !strings.Contains(err.Error(), "look for the file system") || !strings.Contains(err.Error(), "nobody approves") {
		t.Error(err)
	}
}
