package agent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/event"
	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/identity"
)

const (
	configDir  = "/c"
	configFile = configDir + "/config-v1.yaml"
	caFile     = "/ca.crt"
	configText = `apiVersion: nodeagent.config.gardener.cloud/v1alpha1
kind: NodeAgentConfiguration
apiServer: {server: "https://10.0.0.1:6443", caFile: /ca.crt}
controllers:
  operatingSystemConfig: {secretName: pool-a, kubernetesVersion: 1.34.2}
`
	otherText = configText + "logLevel: debug\n"
	// testCA is any certificate.
	testCA = `-----BEGIN CERTIFICATE-----
MIIBcjCCARegAwIBAgIUdo/uEAFroCDPS+Su6V6QnuR5Yf0wCgYIKoZIzj0EAwIw
DTELMAkGA1UEAwwCY2EwIBcNMjYxMTIyMTk0MTM3WhgPMjEyNjEwMjkxOTQxMzda
MA0xCzAJBgNVBAMMAmNhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEAMGq90aF
Sc01uyc76sIOR/Z4uNKcim5oSLps7tppcbJlTUzUGZ/OYp0giqKutoZZplIoc7oZ
klEd1sQQDRKA8qNTMFEwHQYDVR0OBBYEFAIK8JaNHJs6xbcSKYChQ2aE1HSOMB8G
A1UdIwQYMBaAFAIK8JaNHJs6xbcSKYChQ2aE1HSOMA8GA1UdEwEB/wQFMAMBAf8w
CgYIKoZIzj0EAwIDSQAwRgIhAIqIiY8+7J+w3iOAwMkp1yCC//p7Z63der7b4Blh
csMNAiEAvWtCxDy2vMF2lFDE4nyIAmckgIrCNfiU4Jo6xgOZHbo=
-----END CERTIFICATE-----
`
)

// machineWith is a machine with a configuration.
func machineWith(text string) *memory.Host {
	h := memory.New()
	h.Put("/proc/sys/kernel/hostname", "n1\n", 0o644)
	h.Put(config.MachineName, "m1\n", 0o644)
	h.Put(configFile, text, 0o600)
	h.Put(caFile, testCA, 0o644)
	h.PutDir("/etc/berth")
	return h
}

func settingsOf(h *memory.Host) Settings {
	log := slog.New(slog.DiscardHandler)
	return Settings{Host: h, Version: "v1", ConfigDir: configDir,
		NewLog:  func(string, string) *slog.Logger { return log },
		Status:  func(string) {},
		Explain: func(err error) (string, string, string) { return "ERR", err.Error(), "do it" },
		Updater: func(*config.Options, *event.Recorder, *slog.Logger) reconcile.SelfUpdate { return nil },
		Open:    func(Source, SecretReader, bool) reconcile.Opener { return nil },
	}
}

func begin(t *testing.T, h *memory.Host) *Agent {
	t.Helper()
	a, err := New(settingsOf(h))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// posted keeps the events that are created.
type posted struct {
	mu   sync.Mutex
	told []string
}

func (p *posted) CreateEvent(_ context.Context, e *core.Event) (*core.Event, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, e.Reason+" "+e.Message)
	return e, nil
}

func (p *posted) PatchEvent(context.Context, string, string, []byte) error { return nil }

// said are the events of what is done.
func said(t *testing.T, a *Agent, do func()) []string {
	t.Helper()
	p := &posted{}
	a.events = event.New(p, "n1")
	do()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.events.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return p.told
}

// TestKubeconfigOfTheEnvironment: it counts before the configuration's, and is one of the
// files that the agent goes by.
func TestKubeconfigOfTheEnvironment(t *testing.T) {
	const byConfig, byEnvironment = "/etc/config.kubeconfig", "/etc/environment.kubeconfig"
	good := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n" +
		"clusters: [{name: k, cluster: {server: \"https://api\"}}]\nusers: [{name: u, user: {token: a}}]\n"
	for _, c := range []struct{ environment, want string }{{"", byConfig}, {byEnvironment, byEnvironment}} {
		h := machineWith(configText + "clientConnection: {kubeconfig: " + byConfig + "}\n")
		h.Put(byConfig, good, 0o600)
		h.Put(byEnvironment, good, 0o600)
		s := settingsOf(h)
		s.Kubeconfig = c.environment
		a, err := New(s)
		if err != nil || a.keeper.Given != c.want {
			t.Fatalf("%q: %v", c.environment, err)
		}
		h.Overwrite(c.want, "{")
		if told := said(t, a, func() {
			if a.changed(t.Context()) {
				t.Error("a kubeconfig that can't be read ends the agent")
			}
		}); len(told) != 1 || !strings.Contains(told[0], c.want) {
			t.Errorf("told %q", told)
		}
		h.Overwrite(c.want, strings.Replace(good, "https://api", "https://other", 1))
		if !a.changed(t.Context()) {
			t.Error("another server does not start the agent anew")
		}
	}
	s := settingsOf(machineWith(configText))
	s.Kubeconfig = "relative"
	if _, err := New(s); err == nil || !strings.Contains(err.Error(), "KUBECONFIG") {
		t.Errorf("a relative path: %v", err)
	}
}

var spoilt = map[string]func(h *memory.Host){
	"refused":         func(h *memory.Host) { h.Overwrite(configFile, strings.Replace(configText, "https", "http", 1)) },
	"no YAML":         func(h *memory.Host) { h.Overwrite(configFile, "{") },
	"gone":            func(h *memory.Host) { _ = h.Remove(configFile) },
	"wrong options":   func(h *memory.Host) { h.Put(config.OptionsPath, "trail: false\n", 0o600) },
	"CA gone":         func(h *memory.Host) { _ = h.Remove(caFile) },
	"CA of cats":      func(h *memory.Host) { h.Overwrite(caFile, "cats") },
	"one after other": func(h *memory.Host) { h.Overwrite(configFile, "{"); h.Put(config.OptionsPath, "[]", 0o600) },
}

// TestRefusedConfigurationEndsNothing: the agent goes on with what it has, says so
// once, and takes what is right again.
func TestRefusedConfigurationEndsNothing(t *testing.T) {
	for name, spoil := range spoilt {
		t.Run(name, func(t *testing.T) {
			h := machineWith(configText)
			a := begin(t, h)
			told := said(t, a, func() {
				spoil(h)
				for range 2 {
					if a.changed(t.Context()) {
						t.Fatal("it ends the agent")
					}
				}
			})
			if len(told) != 1 || !strings.HasPrefix(told[0], "ConfigRefused ERR: ") || !strings.HasSuffix(told[0], " — do it") {
				t.Errorf("told %q", told)
			}
			h.Put(caFile, testCA, 0o644)
			h.Put(config.OptionsPath, "", 0o600)
			h.Put(configFile, configText, 0o600)
			if a.changed(t.Context()) {
				t.Error("what was there before ends the agent")
			}
			h.Put(configFile, otherText, 0o600)
			if !a.changed(t.Context()) {
				t.Error("what is right again is passed over")
			}
		})
	}
}

// TestStartWithARefusedConfiguration: what was taken last serves.
func TestStartWithARefusedConfiguration(t *testing.T) {
	for name, spoil := range spoilt {
		t.Run(name, func(t *testing.T) {
			h := machineWith(otherText)
			h.Put(config.OptionsPath, "maxUnavailable: 3\n", 0o600)
			begin(t, h)
			spoil(h)
			a := begin(t, h)
			if a.config.LogLevel != "debug" || a.file != configFile || !strings.HasPrefix(name, "CA") && (a.options.MaxUnavailable != 3 || a.refused == "") {
				t.Errorf("%+v %+v, file %s, refused %q", a.config, a.options, a.file, a.refused)
			}
			if a.changed(t.Context()) {
				t.Error("it ends at once")
			}
			h.Put(caFile, testCA, 0o644)
			h.Put(configFile, configText, 0o600)
			h.Put(config.OptionsPath, "", 0o600)
			if !a.changed(t.Context()) {
				t.Error("what is right again is passed over")
			}
		})
	}
	for _, p := range []string{keptConfig, keptOptions} {
		h := machineWith(configText)
		begin(t, h)
		if info, err := h.Lstat(p); err != nil || info.Mode.Perm() != 0o600 {
			t.Errorf("%s: %v %v", p, info.Mode, err)
		}
	}
}

func TestFirstStartWithARefusedConfiguration(t *testing.T) {
	_, err := New(settingsOf(machineWith("{")))
	if _, ok := errors.AsType[*config.Error](err); !ok {
		t.Error(err)
	}
}

// TestCertificateThatIsNotRenewedIsTold: once on the Node, until one is renewed.
func TestCertificateThatIsNotRenewedIsTold(t *testing.T) {
	a := begin(t, machineWith(configText))
	told := said(t, a, func() {
		r := renewal{a: a, client: func(apiserver.Access) error { return nil }}
		for _, err := range []string{"expired 1s ago", "expired 2s ago"} {
			r.failed(errors.New(err))
		}
		if err := r.renewed(apiserver.Access{}); err != nil {
			t.Fatal(err)
		}
		r.failed(errors.New("away"))
	})
	want := []string{"CertificateNotRenewed ERR: expired 1s ago — do it", "CertificateNotRenewed ERR: away — do it"}
	if d := cmp.Diff(want, told); d != "" {
		t.Error(d)
	}
}

// TestNewerConfigurationIsNoticed: that of a newer version counts, and one of an older
// version does not.
func TestNewerConfigurationIsNoticed(t *testing.T) {
	h := machineWith(configText)
	s := settingsOf(h)
	s.Version = "v0"
	a, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		a.reconciler = &reconcile.Reconciler{}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- a.watchConfig(ctx) }()
		synctest.Wait()
		h.Put(configDir+"/config-a1.yaml", otherText, 0o600)
		h.Put(configDir+"/other", "x", 0o600)
		synctest.Wait()
		if len(done) > 0 {
			t.Error("ended by what does not count")
		}
		h.Put(configDir+"/config-v2.yaml", configText, 0o600)
		synctest.Wait()
		if len(done) == 0 {
			t.Error("passed over")
			cancel()
		}
		if err := <-done; err == nil {
			t.Error("not started anew")
		}
	})
	if a, err = New(s); err != nil || path.Base(a.file) != "config-v2.yaml" {
		t.Error(a.file, err)
	}
}

// TestUnusableCADoesNotEndTheAgent: it says so and tries again.
func TestUnusableCADoesNotEndTheAgent(t *testing.T) {
	h := machineWith(configText)
	h.Overwrite(caFile, "cats")
	h.Put(config.BootstrapToken, "abcdef.0123456789abcdef", 0o600)
	var log bytes.Buffer
	s := settingsOf(h)
	s.NewLog = func(string, string) *slog.Logger { return slog.New(slog.NewTextHandler(&log, nil)) }
	s.Issuer = issuer{}
	a, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	a.Explain = func(err error) (string, string, string) {
		if tries++; tries == 3 {
			cancel()
		}
		return "ERR", err.Error(), "do it"
	}
	var g errgroup.Group
	if err := a.connect(ctx, &g); err != nil || tries != 3 {
		t.Errorf("%d tries, then %v", tries, err)
	}
	if n := strings.Count(log.String(), "hint="); n != 3 {
		t.Errorf("%d lines:\n%s", n, &log)
	}
}

// issuer gives what it is asked for to anybody.
type issuer struct{}

func (issuer) IssueForAgent(context.Context, identity.Agent, apiserver.Access) (converge.Credential, error) {
	return converge.Credential{}, nil
}

func TestOptionTrialIsPassedOn(t *testing.T) {
	for text, want := range map[string]bool{"": true, "trial: true\n": true, "trial: false\n": false} {
		h := machineWith(configText)
		h.Put(config.OptionsPath, text, 0o600)
		s, got := settingsOf(h), !want
		s.Open = func(_ Source, _ SecretReader, try bool) reconcile.Opener { got = try; return nil }
		if _, err := New(s); err != nil || got != want {
			t.Errorf("%q: try %v, %v", text, got, err)
		}
	}
}
