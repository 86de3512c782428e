package converge_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// A root directory gets all files and links; what needs a running machine is
// deferred, done on first boot, and then nothing is left.
func TestOfflineThenFirstBoot(t *testing.T) {
	h, p := newMachine(), &providers{}
	offline := func(o *converge.Options) { o.Offline, o.NoFetch = true, true }
	res, err := engine(h, p, offline).Apply(t.Context(), sampleState(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Plan.Deferred) == 0 || len(h.Jobs()) > 0 || p.probes > 0 {
		t.Fatalf("deferred %v, jobs %v, probes %d", res.Plan.Deferred, h.Jobs(), p.probes)
	}
	if got, err := h.ReadFile(bootstrap); err != nil || string(got) != "token" {
		t.Errorf("the bootstrap kubeconfig is %q, %v", got, err)
	}
	plan, err := engine(h, p, offline).Plan(t.Context(), sampleState(t))
	if err != nil || !plan.Empty() {
		t.Fatalf("a second plan of the root has %v, %v", verbs(plan), err)
	}
	h.Flush()
	h.Boot()
	again(t, h, scenarios()[0])
	if _, err := h.Lstat(bootstrap); err == nil {
		t.Error("the bootstrap kubeconfig outlived the certificate")
	}
}

// Somebody who edits a file between plan and act is not overwritten.
func TestChangedMeanwhile(t *testing.T) {
	_, h := applied(t)
	h.Put("/etc/default/kubelet", "drifted\n", 0o600)
	p := &providers{}
	meddler := &meddle{providers: p, do: func() { h.Put("/etc/default/kubelet", "mine\n", 0o600) }}
	e := converge.New(converge.Options{Host: h, Providers: converge.Providers{Issuer: p, Prober: meddler, SelfSigned: selfSigned, ServingValid: servingValid}, Command: "test"})
	_, err := e.Apply(t.Context(), sampleState(t))
	if !errors.Is(err, converge.ErrChanged) {
		t.Fatalf("error %v", err)
	}
	if got, _ := h.ReadFile("/etc/default/kubelet"); string(got) != "mine\n" {
		t.Fatalf("content %q", got)
	}
}

// meddle edits the machine while the checks run.
type meddle struct {
	*providers
	do func()
}

func (m *meddle) Probe(context.Context, *desired.Check) error { m.do(); return nil }

// A lost or torn ledger costs no correctness: nothing is planned, and what was
// replaced is still restored.
func TestLostLedger(t *testing.T) {
	for name, content := range map[string]string{"lost": "", "torn": `{"version":1,"entr`, "foreign": `[1]`, "without a version": `{}`} {
		t.Run(name, func(t *testing.T) {
			p, h := applied(t)
			must(h.Remove("/var/lib/berth/ledger.json"))
			if content != "" {
				h.Put("/var/lib/berth/ledger.json", content, 0o600)
			}
			plan, err := engine(h, p).Plan(t.Context(), sampleState(t))
			if err != nil || !plan.Empty() {
				t.Fatalf("%v, %v", verbs(plan), err)
			}
			h.Put("/etc/containerd/config.toml", "drift\n", 0o644)
			if _, err := engine(h, p).Apply(t.Context(), sampleState(t)); err != nil {
				t.Fatal(err)
			}
			if _, err := engine(h, p).Apply(t.Context(), &desired.State{Owner: desired.OwnerAKS}); err != nil {
				t.Fatal(err)
			}
			if got, _ := h.ReadFile("/etc/containerd/config.toml"); string(got) != "version = 2\n" {
				t.Fatalf("the original came back as %q", got)
			}
		})
	}
}

// The ledger of a newer berth says more than this one can read: nothing is done,
// and the ledger stays as it is.
func TestLedgerOfANewerBerth(t *testing.T) {
	const newer = `{"version":3,"entries":[],"more":{}}`
	p, h := applied(t)
	h.Put("/var/lib/berth/ledger.json", newer, 0o600)
	h.Put("/etc/default/kubelet", "drift\n", 0o600)
	before := h.Tree()
	_, err := engine(h, p).Apply(t.Context(), sampleState(t))
	e, ok := errors.AsType[*converge.LedgerVersionError](err)
	if !ok || e.Version != 3 || e.Hint() == "" {
		t.Fatalf("error %v", err)
	}
	if diff := cmp.Diff(before, h.Tree()); diff != "" {
		t.Fatal(diff)
	}
	if _, err := engine(h, p).Plan(t.Context(), sampleState(t)); !errors.As(err, &e) {
		t.Fatalf("plan: error %v", err)
	}
}

func TestLockNamesItsHolder(t *testing.T) {
	h := newMachine()
	if _, err := host.MkdirAll(h, "/run/berth"); err != nil {
		t.Fatal(err)
	}
	unlock, err := h.Lock(t.Context(), "/run/berth/lock", "provision (pid 7)")
	if err != nil {
		t.Fatal(err)
	}
	_, err = engine(h, &providers{}, func(o *converge.Options) { o.LockTimeout = 10 * time.Millisecond }).Apply(t.Context(), sampleState(t))
	var held *host.LockedError
	if !errors.As(err, &held) || held.Holder != "provision (pid 7)" {
		t.Fatalf("error %v", err)
	}
	must(unlock())
}

// A unit that fails to start is an error of that unit, with systemd's word.
func TestUnitFails(t *testing.T) {
	h := newMachine()
	must(h.Remove("/opt/bin/kubelet"))
	_, err := engine(h, &providers{}).Apply(t.Context(), sampleState(t))
	var u *converge.UnitError
	if !errors.As(err, &u) || u.Unit != "kubelet.service" {
		t.Fatalf("error %v", err)
	}
	h.Put("/opt/bin/kubelet", "kubelet", 0o755)
	again(t, h, scenarios()[0])
}

func anchor(t *testing.T, name string) *desired.TrustAnchor {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &desired.TrustAnchor{Name: name, PEM: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

// Two anchors rebuild the bundle once; one that is already in it is left.
func TestTrust(t *testing.T) {
	h, runs := newMachine(), 0
	dir := "/usr/local/share/ca-certificates"
	h.PutDir(dir)
	h.Put("/etc/ssl/certs/ca-certificates.crt", "", 0o644)
	h.Program("/usr/sbin/update-ca-certificates", func(host.Command) host.Output {
		runs++
		var bundle strings.Builder
		names, _ := h.ReadDir(dir)
		for _, n := range names {
			data, _ := h.ReadFile(dir + "/" + n)
			bundle.Write(data)
		}
		h.Put("/etc/ssl/certs/ca-certificates.crt", bundle.String(), 0o644)
		return host.Output{}
	})
	st := &desired.State{Owner: desired.OwnerAKS}
	st.Add(anchor(t, "one"), anchor(t, "two"))
	must(st.Seal())
	res, err := engine(h, &providers{}).Apply(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"create trust:one", "update trust:one", "create trust:two", "update trust:two"}, verbs(res.Plan)); diff != "" {
		t.Error(diff)
	}
	if runs != 1 {
		t.Errorf("the bundle was rebuilt %d times", runs)
	}
	plan, err := engine(h, &providers{}).Plan(t.Context(), st)
	if err != nil || !plan.Empty() {
		t.Fatalf("%v, %v", verbs(plan), err)
	}
}

// Another name that a file gains between plan and act is no change of it.
func TestLinkedMeanwhile(t *testing.T) {
	_, h := applied(t)
	h.Put("/etc/default/kubelet", "drifted\n", 0o600)
	p := &providers{}
	meddler := &meddle{providers: p, do: func() { must(h.Link("/etc/default/kubelet", "/etc/default/other")) }}
	e := converge.New(converge.Options{Host: h, Providers: converge.Providers{Issuer: p, Prober: meddler, SelfSigned: selfSigned, ServingValid: servingValid}, Command: "test"})
	if _, err := e.Apply(t.Context(), sampleState(t)); err != nil {
		t.Fatal(err)
	}
}

// The start limit is for units that end by themselves, not for one that berth
// restarts because its files changed again and again.
func TestManyChangesInARow(t *testing.T) {
	_, h := applied(t)
	e := engine(h, &providers{})
	for i := range 8 {
		h.Put("/etc/default/kubelet", fmt.Sprintf("drift %d\n", i), 0o600)
		res, err := e.Apply(t.Context(), sampleState(t))
		if err != nil || res.Plan.Empty() {
			t.Fatalf("change %d: %v", i, err)
		}
	}
	plan, err := e.Plan(t.Context(), sampleState(t))
	if err != nil || !plan.Empty() {
		t.Errorf("still planned: %v, %v", verbs(plan), err)
	}
}
