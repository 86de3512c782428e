package provision

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/component/apicheck"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// The API server of a machine that is no node yet has answered when the plan's check asks
// for it. A node has a certificate and needs no check, and another root is no machine yet.
func TestProbeEarly(t *testing.T) {
	asked := make(chan struct{}, 1)
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{} }))
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	check := apicheck.At("127.0.0.1", s.Listener.Addr().(*net.TCPAddr).Port, ca, time.Minute)
	st := &desired.State{Owner: desired.OwnerAKS, Resources: []desired.Resource{check}}
	h := memory.New()
	q := &Inquiry{Host: h}
	q.BeginJoin(t.Context(), st)
	<-asked
	s.Close() // when it has answered
	if err := (Prober{Host: h, Server: apiserver.Prober{Connections: &apiserver.Connections{}, Early: &q.Probe}}).Probe(t.Context(), check); err != nil {
		t.Error(err)
	}
	if got := q.earlyCheck(&desired.State{}); got != nil {
		t.Errorf("without a check: %v", got)
	}
	q.Source.Offline = true
	if got := q.earlyCheck(st); got != nil {
		t.Errorf("in another root: %v", got)
	}
	h.Put(kubelet.Kubeconfig, "", 0o600)
	q.Source.Offline = false
	if got := q.earlyCheck(st); got != nil {
		t.Errorf("on a node: %v", got)
	}
}

// kubelet's certificate is asked for as soon as the API server has answered.
func TestCertificateEarly(t *testing.T) {
	asked := make(chan string, 9)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.Header.Get("Authorization")
		w.WriteHeader(http.StatusForbidden)
	}))
	defer s.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	check := apicheck.At("127.0.0.1", s.Listener.Addr().(*net.TCPAddr).Port, ca, time.Minute)
	certificate := &desired.ClientCertificate{Base: desired.Base{After: []desired.ID{check.ID()}}, NodeName: "n", Server: s.URL, CA: ca, Token: "abcdef.0123456789abcdef", Kubeconfig: kubelet.Kubeconfig, Timeout: time.Minute}
	q := &Inquiry{Host: memory.New()}
	q.BeginJoin(t.Context(), &desired.State{Owner: desired.OwnerAKS, Resources: []desired.Resource{check, certificate}})
	for _, want := range []string{"GET ", "POST Bearer abcdef.0123456789abcdef"} {
		if got := <-asked; got != want {
			t.Errorf("asked for %q, want %q", got, want)
		}
	}
}
