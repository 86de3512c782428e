package credential

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/identity"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

const (
	caFile = "/var/lib/gardener-node-agent/cluster-ca.crt"
	server = "https://10.0.0.1:6443"
	token  = "abcdef.0123456789abcdef"
)

// signer issues certificates that are valid for life from now on.
type signer struct {
	t    *testing.T
	h    *memory.Host
	life time.Duration
	err  error
	// refuses is the answer to who shows a certificate.
	refuses error
	asked   []apiserver.Access
}

func (s *signer) IssueForAgent(_ context.Context, who identity.Agent, a apiserver.Access) (converge.Credential, error) {
	s.asked = append(s.asked, a)
	if s.err != nil {
		return converge.Credential{}, s.err
	}
	if s.refuses != nil && a.Token == "" {
		return converge.Credential{}, s.refuses
	}
	return issue(s.t, who.Machine, s.h.Now(), s.life), nil
}

func issue(t *testing.T, machine string, from time.Time, life time.Duration) converge.Credential {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(from.UnixNano()), NotBefore: from, NotAfter: from.Add(life),
		Subject: pkix.Name{CommonName: identity.AgentUserPrefix + machine, Organization: []string{identity.AgentsGroup}}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return converge.Credential{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})}
}

// machine is one that was just booted with its init data.
func machine(t *testing.T) (*memory.Host, *signer, *Keeper) {
	t.Helper()
	h := memory.New()
	h.Put(caFile, "CA", 0o640)
	h.Put(config.MachineName, "m1\n", 0o640)
	h.Put(config.BootstrapToken, token+"\n", 0o640)
	s := &signer{t: t, h: h, life: 720 * time.Hour}
	k, err := New(h, s, &config.NodeAgent{APIServer: config.APIServer{Server: server, CAFile: caFile}}, identity.AgentsGroup, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	return h, s, k
}

func TestFirstCredentialComesOfTheToken(t *testing.T) {
	h, s, k := machine(t)
	a, err := k.Access(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.asked) != 1 || s.asked[0].Token != token || s.asked[0].Certificate != nil {
		t.Errorf("asked with %+v", s.asked)
	}
	if a.Token != "" || a.Server != server || string(a.CA) != "CA" || identity.AgentProblem(converge.Credential{Certificate: a.Certificate, Key: a.Key}, identity.Agent{Machine: "m1", Group: identity.AgentsGroup}, h.Now()) != "" {
		t.Errorf("access %+v", a)
	}
	info, err := h.Lstat(config.Kubeconfig)
	if err != nil || info.Mode.Perm() != 0o600 {
		t.Error(info.Mode, err)
	}
	c, err := kubeconfig.Read(h, config.Kubeconfig)
	if err != nil || string(c.Certificate) != string(a.Certificate) || string(c.Key) != string(a.Key) {
		t.Error("another credential is kept", err)
	}
	again, err := k.Access(t.Context())
	if err != nil || len(s.asked) != 1 || string(again.Certificate) != string(a.Certificate) {
		t.Error("a second one was asked for", err)
	}
}

func TestKeptCredentialThatDoesNotServe(t *testing.T) {
	for name, spoil := range map[string]func(h *memory.Host, k *Keeper){
		"expired":         func(h *memory.Host, _ *Keeper) { h.Advance(721 * time.Hour) },
		"another machine": func(_ *memory.Host, k *Keeper) { k.Agent.Machine = "m2" },
		"garbage":         func(h *memory.Host, _ *Keeper) { h.Overwrite(config.Kubeconfig, "{") },
		"empty":           func(h *memory.Host, _ *Keeper) { h.Overwrite(config.Kubeconfig, "") },
		"gone":            func(h *memory.Host, _ *Keeper) { _ = h.Remove(config.Kubeconfig) },
	} {
		t.Run(name, func(t *testing.T) {
			h, s, k := machine(t)
			if _, err := k.Access(t.Context()); err != nil {
				t.Fatal(err)
			}
			spoil(h, k)
			if _, err := k.Access(t.Context()); err != nil || len(s.asked) != 2 || s.asked[1].Token != token {
				t.Error(err, s.asked)
			}
			spoil(h, k)
			if err := h.Remove(config.BootstrapToken); err != nil {
				t.Fatal(err)
			}
			if name == "another machine" {
				k.Agent.Machine = "m3"
			}
			_, err := k.Access(t.Context())
			if exitcode.Of(err) != exitcode.Credential || !strings.Contains(err.Error(), "no bootstrap token") {
				t.Errorf("without a token: %v", err)
			}
		})
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	h, s, k := machine(t)
	s.err = errors.New("nobody approves")
	if _, err := k.Access(t.Context()); !errors.Is(err, s.err) {
		t.Error(err)
	}
	if err := h.Remove(caFile); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Access(t.Context()); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), caFile) {
		t.Error(err)
	}
	h.Overwrite(config.MachineName, " \n")
	if _, err := New(h, s, &config.NodeAgent{}, identity.AgentsGroup, 0); err == nil {
		t.Error("a machine without a name")
	}
}

func TestDue(t *testing.T) {
	_, _, k := machine(t)
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := issue(t, "m1", from, 1000*time.Hour).Certificate
	for random, want := range map[float64]time.Duration{0: 800 * time.Hour, 0.5: 840 * time.Hour, 1: 880 * time.Hour} {
		k.Random = random
		if got := k.Due(c).Sub(from).Round(time.Second); got != want {
			t.Errorf("%v: %s, want %s", random, got, want)
		}
	}
}

// TestRotate goes through two renewals and a failure between them, on the clock of a
// machine in memory.
func TestRotate(t *testing.T) {
	h, s, k := machine(t)
	a, err := k.Access(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began, failures := h.Now(), 0
	var renewals []time.Duration
	k.Rotate(ctx, a, func(next apiserver.Access) error {
		renewals = append(renewals, h.Now().Sub(began))
		if next.Token != "" || string(next.Certificate) == string(a.Certificate) {
			t.Error("nothing was renewed")
		}
		if s.err = errors.New("away"); len(renewals) == 2 {
			cancel()
		}
		return nil
	}, func(error) {
		if failures++; failures == 3 {
			s.err = nil
		}
	})
	if len(renewals) != 2 || failures != 3 {
		t.Fatal(renewals, failures)
	}
	for _, a := range s.asked[1:] {
		if a.Token != "" || len(a.Certificate) == 0 {
			t.Error("asked without the certificate in force")
		}
	}
	if first := renewals[0]; first < 576*time.Hour || first > 634*time.Hour {
		t.Errorf("renewed after %s", first)
	}
}

func TestKubeletsFirstCredential(t *testing.T) {
	h, _, k := machine(t)
	if err := k.GiveKubelet(); err != nil {
		t.Fatal(err)
	}
	c, err := kubeconfig.Read(h, KubeletBootstrap)
	if err != nil || c.Token != token || c.Server != server || c.CAFile != caFile {
		t.Errorf("%+v %v", c, err)
	}
	if info, _ := h.Lstat(KubeletBootstrap); info.Mode.Perm() != 0o600 {
		t.Error(info.Mode)
	}
	before, _ := h.Lstat(KubeletBootstrap)
	if err := k.GiveKubelet(); err != nil {
		t.Fatal(err)
	}
	if after, _ := h.Lstat(KubeletBootstrap); !after.Unchanged(before) {
		t.Error("written again")
	}
	for range 2 {
		if err := k.TakeAway(); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{KubeletBootstrap, config.BootstrapToken} {
		if _, err := h.Lstat(p); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left", p)
		}
	}
	if err := k.GiveKubelet(); err != nil {
		t.Error("without a token there is nothing to give:", err)
	}
}

func TestKubeletWithACertificateNeedsNone(t *testing.T) {
	for _, p := range []string{kubelet.AgentKubeconfig, KubeletCertificate} {
		h, _, k := machine(t)
		h.Put(p, "x", 0o600)
		if err := k.GiveKubelet(); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Lstat(KubeletBootstrap); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("beside %s kubelet got a first credential", p)
		}
	}
}
