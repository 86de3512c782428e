package agent

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

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/identity"
)

// joined is a machine that berth join has made a node, and how the agent comes there.
func joined(t *testing.T) (*memory.Host, *Keep, func(context.Context, *desired.State) (*converge.Result, error)) {
	t.Helper()
	h := memory.New()
	h.PutDir("/run/berth")
	h.PutDir("/etc/berth")
	h.PutDir("/var/lib")
	h.Put("/usr/local/bin/berth", "program", 0o755)
	k := &Keep{Program: "/usr/local/bin/berth", Version: "v1.2.3", File: "/etc/berth/node.yaml", Node: "n1", Kubernetes: "1.36.3",
		Server: "https://10.0.0.1:6443", CAFile: "/etc/kubernetes/certs/ca.crt",
		Token: func() (desired.Secret, error) { return "abcdef.0123456789abcdef", nil }}
	return h, k, func(ctx context.Context, st *desired.State) (*converge.Result, error) {
		return converge.New(converge.Options{Host: h, Command: "test", Workers: 1}).Apply(ctx, st)
	}
}

func start(t *testing.T, h *memory.Host, k *Keep, apply func(context.Context, *desired.State) (*converge.Result, error)) int {
	t.Helper()
	res, err := k.Start(t.Context(), h, apply)
	if err != nil {
		t.Fatal(err)
	}
	if res == nil {
		return 0
	}
	return len(res.Plan.Actions)
}

// TestKeep: the agent is told what it needs and runs; a second time nothing is left to do,
// also where the token is gone; and a reset gives the machine back.
func TestKeep(t *testing.T) {
	h, k, apply := joined(t)
	before := withoutState(h)
	if start(t, h, k, apply) == 0 {
		t.Error("no changes")
	}
	if u := h.Units()[config.Unit]; u.ActiveState != "active" {
		t.Errorf("%+v", u)
	}
	file, err := config.Find(h, config.BaseDir, k.Version)
	if err != nil {
		t.Fatal(err)
	}
	c, notes, err := config.Read(h, file)
	if err != nil || len(notes) > 0 || c.APIServer != (config.APIServer{Server: k.Server, CAFile: k.CAFile}) || c.Controllers.OperatingSystemConfig.KubernetesVersion != k.Kubernetes {
		t.Errorf("%+v, %q, %v", c, notes, err)
	}
	o, err := config.ReadOptions(h)
	if err != nil || *o.Sources.Secret || o.Sources.NodeConfig != k.File {
		t.Errorf("%+v, %v", o, err)
	}
	for p, want := range map[string]string{config.BootstrapToken: "abcdef.0123456789abcdef", config.MachineName: "n1\n"} {
		if text, err := h.ReadFile(p); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", p, text, err)
		}
		if info, err := h.Lstat(p); err != nil || info.Mode.Perm() != 0o600 {
			t.Errorf("%s: %v, %v", p, info.Mode, err)
		}
	}
	k.Token = func() (desired.Secret, error) { return "", fs.ErrNotExist }
	if err := h.Remove(config.BootstrapToken); err != nil {
		t.Fatal(err)
	}
	if n := start(t, h, k, apply); n != 0 {
		t.Errorf("a second time: %d changes", n)
	}
	for p, text := range map[string]string{config.Kubeconfig: "theirs", config.BootstrapToken: "another", reconcile.RecordPathNode: "{}", keptConfig: "x", keptOptions: "x"} {
		h.Put(p, text, 0o600)
	}
	if kept, err := Reset(t.Context(), h, apply); err != nil || len(kept) > 0 {
		t.Fatal(err, kept)
	}
	if d := cmp.Diff(before, withoutState(h)); d != "" {
		t.Error(d)
	}
}

// withoutState is a machine without what berth remembers of it.
func withoutState(h *memory.Host) map[string]string {
	tree := h.Tree("/")
	for p := range tree {
		if p == "/var/lib/berth" || strings.HasPrefix(p, "/var/lib/berth/") || strings.HasPrefix(p, "/run") {
			delete(tree, p)
		}
	}
	return tree
}

// Who has a certificate needs no token, and it lies nowhere.
func TestKeepWithACertificate(t *testing.T) {
	h, k, apply := joined(t)
	start(t, h, k, apply)
	o, err := config.ReadOptions(h)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Remove(config.BootstrapToken); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		what, machine, server string
		until                 time.Duration
		given                 bool
	}{
		{"its own", "n1", k.Server, time.Hour, false},
		{"another machine's", "n2", k.Server, time.Hour, true},
		{"another cluster's", "n1", "https://10.0.0.2:6443", time.Hour, true},
		{"one that is over", "n1", k.Server, -time.Hour, true},
	} {
		h.Put(config.Kubeconfig, agentKubeconfig(t, tc.server, identity.AgentUserPrefix+tc.machine, o.Group, h.Now().Add(tc.until)), 0o600)
		start(t, h, k, apply)
		_, missing := h.Lstat(config.BootstrapToken)
		if (missing == nil) != tc.given {
			t.Errorf("with %s certificate: the token is there: %v", tc.what, missing == nil)
		}
		_ = h.Remove(config.BootstrapToken)
	}
}

// agentKubeconfig has a certificate that ends at some time.
func agentKubeconfig(t *testing.T, server, user, group string, until time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: until.Add(-48 * time.Hour), NotAfter: until,
		Subject: pkix.Name{CommonName: user, Organization: []string{group}}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	config := api.NewConfig()
	config.Clusters["c"] = &api.Cluster{Server: server, CertificateAuthorityData: []byte("ca")}
	config.AuthInfos["u"] = &api.AuthInfo{ClientCertificateData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		ClientKeyData: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})}
	config.Contexts["x"] = &api.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The token of the first join may end before anybody approves the agent's request: the next
// join brings another one.
func TestKeepAgainWithAnotherToken(t *testing.T) {
	h, k, apply := joined(t)
	start(t, h, k, apply)
	k.Token = func() (desired.Secret, error) { return "ghijkl.0123456789abcdef", nil }
	start(t, h, k, apply)
	if text, err := h.ReadFile(config.BootstrapToken); err != nil || string(text) != "ghijkl.0123456789abcdef" {
		t.Errorf("the agent still has the token of before: %q, %v", text, err)
	}
}

// Options of an operator stay as they are where they name the file, and are refused with a
// remedy where they do not; those of an earlier join become those of this one.
func TestKeepBesideOptions(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"the same file":  {"drift: {policy: report}\nsources: {secret: false, nodeConfig: /etc/berth/node.yaml}\n", ""},
		"another file":   {"drift: {policy: report}\nsources: {secret: false, nodeConfig: /etc/other.yaml}\n", "says other sources"},
		"no file":        {"drift: {policy: report}\n", "says other sources"},
		"no options":     {"drifft: {}\n", "drifft"},
		"earlier join's": {"sources:\n  nodeConfig: /etc/other.yaml\n  secret: false\n", "replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			h, k, apply := joined(t)
			h.Put(config.OptionsPath, tc.text, 0o644)
			_, err := k.Start(t.Context(), h, apply)
			text, _ := h.ReadFile(config.OptionsPath)
			switch tc.want {
			case "", "replaced":
				if replaced := string(text) != tc.text; err != nil || replaced != (tc.want != "") {
					t.Errorf("%v: %s", err, text)
				}
			default:
				if err == nil || !strings.Contains(err.Error(), tc.want) || string(text) != tc.text {
					t.Errorf("%v: %s", err, text)
				}
				if _, err := h.Lstat(unitFile); err == nil {
					t.Error("the agent is there")
				}
			}
		})
	}
}

// An agent that init data brought follows the file, too, or the join says how it can; one
// of somebody else's stays what it is.
func TestKeepBesideAnAgent(t *testing.T) {
	for name, tc := range map[string]struct {
		unit, options string
		refused       bool
	}{
		"that follows the file":     {unitText("/usr/local/bin/berth", "/c"), "sources: {nodeConfig: /etc/berth/node.yaml}\n", false},
		"that follows a Secret":     {unitText("/usr/local/bin/berth", "/c"), "", true},
		"of somebody else's making": {"[Service]\nExecStart=/theirs\n", "sources: {nodeConfig: /etc/berth/node.yaml}\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			h, k, apply := joined(t)
			h.Put(unitFile, tc.unit, 0o644)
			if tc.options != "" {
				h.Put(config.OptionsPath, tc.options, 0o600)
			}
			before := withoutState(h)
			_, err := k.Start(t.Context(), h, apply)
			if tc.refused != (err != nil) {
				t.Error(err)
			}
			if e, ok := errors.AsType[*exitcode.Error](err); err != nil && (!ok || !strings.Contains(e.Remedy, k.File)) {
				t.Errorf("%+v", err)
			}
			if d := cmp.Diff(before, withoutState(h)); d != "" {
				t.Error(d)
			}
		})
	}
}

// Cut off at any effect, the next start ends it, and a reset gives the machine back.
func TestKeepKilled(t *testing.T) {
	for n, more := 1, true; more; n++ {
		h, k, apply := joined(t)
		before := withoutState(h)
		in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
		_, _ = k.Start(t.Context(), in, func(ctx context.Context, st *desired.State) (*converge.Result, error) {
			return converge.New(converge.Options{Host: in, Command: "test", Workers: 1}).Apply(ctx, st)
		})
		more = in.Hit() != nil
		h.Kill()
		if n%2 == 0 {
			start(t, h, k, apply)
			if again := start(t, h, k, apply); again != 0 {
				t.Errorf("killed at %d: %d changes more", n, again)
			}
		}
		if kept, err := Reset(t.Context(), h, apply); err != nil || len(kept) > 0 {
			t.Errorf("killed at %d: %v %q", n, err, kept)
		}
		if d := cmp.Diff(before, withoutState(h)); d != "" {
			t.Errorf("killed at %d: %s", n, d)
		}
	}
}

// TestKeepRequiresDigests: what the command line forbids the agent does not do later; options
// of an operator that would have it do so are refused.
func TestKeepRequiresDigests(t *testing.T) {
	h, k, apply := joined(t)
	k.RequireDigests = true
	for _, changes := range []bool{true, false} {
		if n := start(t, h, k, apply); (n > 0) != changes {
			t.Errorf("%d changes", n)
		}
	}
	if o, err := config.ReadOptions(h); err != nil || !o.RequireDigests {
		t.Errorf("%+v, %v", o, err)
	}
	k.RequireDigests = false // the next join's word counts
	start(t, h, k, apply)
	if o, err := config.ReadOptions(h); err != nil || o.RequireDigests {
		t.Errorf("%+v, %v", o, err)
	}

	for text, ok := range map[string]bool{
		"drift: {policy: report}\nsources: {secret: false, nodeConfig: /etc/berth/node.yaml}\n":                       false,
		"drift: {policy: report}\nrequireDigests: true\nsources: {secret: false, nodeConfig: /etc/berth/node.yaml}\n": true,
	} {
		h, k, apply := joined(t)
		k.RequireDigests = true
		h.Put(config.OptionsPath, text, 0o644)
		_, err := k.Start(t.Context(), h, apply)
		e, refused := errors.AsType[*exitcode.Error](err)
		if refused == ok || refused && !strings.Contains(e.Hint(), "requireDigests: true") {
			t.Errorf("%s%v", text, err)
		}
	}
}
