package kubelet

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

const config = `{
  "authentication": {"webhook": {"cacheTTL": "2m0s"}, "x509": {"clientCAFile": "/etc/kubernetes/certs/ca.crt"}},
  "featureGates": {"A": true, "B": false}, "readOnlyPort": 0, "someNewField": 12345678901234567890,
  "streamingConnectionIdleTimeout": "4h0m0s",
  "tlsCertFile": "/etc/kubernetes/certs/kubeletserver.crt", "tlsPrivateKeyFile": "/etc/kubernetes/certs/kubeletserver.key"
}`

func settings(change func(*Settings)) Settings {
	s := Settings{
		Version: "1.36.3", Hostname: "Node-1", NodeIP: "10.99.0.11", SystemdCgroup: true,
		Flags:  map[string]string{"--cloud-provider": "external", "--eviction-hard": "memory.available<750Mi"},
		Labels: map[string]string{"b": "2", "a": "1"},
		Cluster: &Cluster{
			Server: "https://api.example:443", CA: []byte("CA\n"), APIServer: []byte("API\n"),
			Credential: Credential{Token: "abcdef.0123456789abcdef", Timeout: time.Minute},
		},
	}
	change(&s)
	return s
}

func state(t testing.TB, s Settings) *desired.State {
	t.Helper()
	rs, err := Resources(s)
	if err != nil {
		t.Fatal(err)
	}
	return golden.State(t, rs)
}

// listing is what a reviewer reads: every file with its mode, then the rest.
func listing(t testing.TB, st *desired.State) string {
	t.Helper()
	var b strings.Builder
	for _, r := range st.Resources {
		if f, ok := r.(*desired.File); ok {
			b.WriteString("=== " + f.Path + " " + f.Mode.String() + " " + string(f.Life) + " " + string(f.Until) + "\n" + string(f.Content.Data()))
			continue
		}
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("=== " + string(r.ID()) + " " + string(text) + "\n")
	}
	return b.String()
}

func TestResources(t *testing.T) {
	for name, s := range map[string]Settings{
		"token":    settings(func(*Settings) {}),
		"config":   settings(func(s *Settings) { s.Config = []byte(config) }),
		"old":      settings(func(s *Settings) { s.Version, s.Config, s.SystemdCgroup = "1.26.3", []byte(config), false }),
		"no-token": settings(func(s *Settings) { s.Cluster.Credential.Token = "" }),
		"given": settings(func(s *Settings) {
			s.Cluster.Credential = Credential{Cert: []byte("CERT\n"), Key: "KEY\n"}
		}),
		"served-by-cluster": settings(func(s *Settings) {
			s.Config = []byte(strings.Replace(config, "{", `{"serverTLSBootstrap": true,`, 1))
			s.Flags["--tls-cert-file"], s.Rotation = "/somewhere", true
		}),
		"reserved-slice": settings(func(s *Settings) { s.Config = []byte(`{"kubeReservedCgroup":"/kubereserved.slice"}`) }),
		"own-paths": settings(func(s *Settings) {
			s.Flags = map[string]string{
				"--kubeconfig": "/a/kubeconfig", "--bootstrap-kubeconfig": "/a/bootstrap", "--cert-dir": "/a/pki",
				"--hostname-override": "Other", "--node-ip": "10.0.0.1,fd00::1", "--system-reserved": "cpu=1, memory=1Gi",
			}
		}),
		"linked":   settings(func(s *Settings) { s.Program = "/opt/bin/kubelet-1.36.3" }),
		"prepared": settings(func(s *Settings) { s.Cluster, s.Config = nil, []byte(config) }),
	} {
		t.Run(name, func(t *testing.T) { golden.Check(t, name+".txt", listing(t, state(t, s))) })
	}
}

func TestConfigurationKeepsWhatItDoesNotKnow(t *testing.T) {
	s := settings(func(s *Settings) { s.Config = []byte(config) })
	got := string(golden.File(t, state(t, s), ConfigFile).Content.Data())
	if !strings.Contains(got, `"someNewField": 12345678901234567890`) {
		t.Error(got)
	}
}

func TestKubeconfigsLoad(t *testing.T) {
	st := state(t, settings(func(*Settings) {}))
	var c clientcmdv1.Config
	if err := yaml.UnmarshalStrict(golden.File(t, st, Bootstrap).Content.Data(), &c); err != nil {
		t.Fatal(err)
	}
	if got := c.Clusters[0].Cluster; got.Server != "https://api.example:443" || got.CertificateAuthority != CAFile {
		t.Errorf("cluster %+v", got)
	}
	if got := c.AuthInfos[0].AuthInfo.Token; got != "abcdef.0123456789abcdef" {
		t.Errorf("token %q", got)
	}
}

func TestNodeName(t *testing.T) {
	for override, want := range map[string]string{"": "node-1", " Other ": "other"} {
		s := settings(func(s *Settings) { s.Flags["--hostname-override"] = override })
		if got := s.nodeName(); got != want {
			t.Errorf("%q: %q, want %q", override, got, want)
		}
	}
}

func TestFlagsByVersion(t *testing.T) {
	const streaming, ip = "--streaming-connection-idle-timeout", "--node-ip"
	for version, want := range map[string][]string{
		"1.28.9": {streaming}, "1.29.0": {ip, streaming}, "1.33.13": {ip, streaming}, "1.34.0": {ip}, "1.36.3": {ip}, "": {ip},
	} {
		s := settings(func(s *Settings) {
			s.Version, s.Flags, s.Config = version, map[string]string{streaming: "4h"}, []byte("{}")
		})
		var got []string
		for flag := range s.effectiveFlags() {
			got = append(got, flag)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", version, diff)
		}
	}
}

// A configuration file of the image says itself who may come in.
func TestAnotherFileIsNotOverridden(t *testing.T) {
	for config, closes := range map[string]bool{"/etc/kubernetes/kubelet.yaml": false, "": true} {
		s := settings(func(s *Settings) { s.Flags = map[string]string{"--config": config} })
		if _, got := s.effectiveFlags()["--anonymous-auth"]; got != closes {
			t.Errorf("--config=%s: closed %v", config, got)
		}
	}
}

// Booleans are what kubelet reads as such.
func TestBooleanFlags(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "True": true, "1": true, "false": false, "0": false, "": false} {
		s := settings(func(s *Settings) {
			s.Flags = map[string]string{"--rotate-server-certificates": value, "--protect-kernel-defaults": value}
			s.Config = []byte(`{"serverTLSBootstrap":true,"protectKernelDefaults":true}`)
		})
		if s.ServesClusterCertificate() != want || s.ProtectsKernelDefaults() != want {
			t.Errorf("%q: %v, %v", value, s.ServesClusterCertificate(), s.ProtectsKernelDefaults())
		}
	}
}

// The node's label tells what the contract says of serving certificates; a flag
// says what kubelet does.
func TestRotationIsLabelledAsTheContractSays(t *testing.T) {
	const label, file = "kubernetes.azure.com/kubelet-serving-ca", "--tls-cert-file"
	for name, c := range map[string]struct {
		said, flag       bool
		labelled, served bool
	}{
		"neither": {}, "contract": {said: true, labelled: true}, "flag": {flag: true, served: true},
		"both": {said: true, flag: true, labelled: true, served: true},
	} {
		s := settings(func(s *Settings) {
			s.Rotation = c.said
			s.Flags = map[string]string{file: "/a.crt", "--tls-private-key-file": "/a.key", "--rotate-server-certificates": strconv.FormatBool(c.flag)}
		})
		_, labelled := s.labels()[label]
		_, given := s.effectiveFlags()[file]
		pair := slices.ContainsFunc(state(t, s).Resources, func(r desired.Resource) bool { return r.Kind() == "serving" })
		if labelled != c.labelled || given == (c.said || c.flag) || pair == c.served {
			t.Errorf("%s: labelled %v, given the file %v, made a pair %v", name, labelled, given, pair)
		}
	}
}

// A tag of the virtual machine goes before everything that the contract says of the
// serving certificate, and changes nothing else.
func TestWithoutRotation(t *testing.T) {
	s := settings(func(s *Settings) {
		s.Rotation = true
		s.Flags = map[string]string{"--rotate-server-certificates": "true", "--tls-cert-file": "/a.crt", "--tls-private-key-file": "/a.key", "--v": "3"}
		s.Labels = map[string]string{"kubernetes.azure.com/kubelet-serving-ca": "cluster", "a": "b"}
		s.Config = []byte(`{"serverTLSBootstrap":true,"maxPods":30}`)
	})
	off, err := s.WithoutRotation()
	if err != nil {
		t.Fatal(err)
	}
	flags := off.effectiveFlags()
	if off.KeepsNoServingFiles() || flags["--rotate-server-certificates"] != "false" || flags["--tls-cert-file"] != "/a.crt" || flags["--v"] != "3" {
		t.Errorf("flags %v", flags)
	}
	if diff := cmp.Diff(map[string]string{"a": "b"}, off.labels()); diff != "" || string(off.Config) != `{"maxPods":30}` {
		t.Errorf("labels %s, configuration %s", diff, off.Config)
	}
	if s.Flags["--rotate-server-certificates"] != "true" || len(s.Labels) != 2 {
		t.Error("the contract's own settings are changed")
	}
	s.Config = []byte("{")
	if _, err := s.WithoutRotation(); err == nil {
		t.Error("no error for a configuration that is none")
	}
	plain, err := Settings{Version: "1.36.3"}.WithoutRotation()
	if err != nil || plain.Config != nil || plain.Flags["--rotate-server-certificates"] != "" {
		t.Errorf("%+v, %v", plain, err)
	}
}

func TestSecretsStayClosed(t *testing.T) {
	st := state(t, settings(func(s *Settings) { s.Cluster.Credential = Credential{Cert: []byte("CERT"), Key: "KEY"} }))
	printed, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	key := golden.File(t, st, ClientKey)
	if key.Mode != 0o600 || !key.Content.IsSecret() || strings.Contains(string(printed), `"KEY"`) {
		t.Errorf("%s can be read: mode %s", ClientKey, key.Mode)
	}
}

func FuzzConfiguration(f *testing.F) {
	f.Add([]byte(config))
	f.Add([]byte(`{"kind":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := settings(func(s *Settings) { s.Config = data })
		rs, err := Resources(s)
		if err != nil {
			return
		}
		// Whether a file of the configuration's is another one's, too, is for the
		// whole state to say.
		st := &desired.State{Owner: desired.OwnerAKS}
		st.Add(rs...)
		if err := st.Seal(); err != nil && !strings.Contains(err.Error(), "stands in its way") {
			t.Fatal(err)
		}
	})
}

// TestServingPair: the pair is where kubelet reads it, which takes a relative
// path in its configuration from that file's directory.
func TestServingPair(t *testing.T) {
	for _, test := range []struct {
		config    string
		flags     map[string]string
		cert, key string
	}{
		{`{}`, nil, "/var/lib/kubelet/pki/kubelet.crt", "/var/lib/kubelet/pki/kubelet.key"},
		{`{"tlsCertFile": "a.crt", "tlsPrivateKeyFile": "../b//b.key"}`, nil, "/etc/default/a.crt", "/etc/b/b.key"},
		{`{"tlsCertFile": "/tls//a.crt", "tlsPrivateKeyFile": "/tls/./b.key"}`, nil, "/tls/a.crt", "/tls/b.key"},
		{`{"tlsCertFile": "a.crt", "tlsPrivateKeyFile": "b.key"}`, map[string]string{"--tls-cert-file": "c.crt"}, "/c.crt", "/etc/default/b.key"},
		{`{"tlsCertFile": "both.pem", "tlsPrivateKeyFile": "./both.pem"}`, nil, "", ""},
	} {
		st := state(t, settings(func(s *Settings) {
			s.Config = []byte(test.config)
			maps.Copy(s.Flags, test.flags)
		}))
		var cert, key string
		for _, r := range st.Resources {
			if pair, ok := r.(*desired.ServingCertificate); ok {
				cert, key = pair.CertFile, pair.KeyFile
			}
		}
		if cert != test.cert || key != test.key {
			t.Errorf("%s %v: %q and %q", test.config, test.flags, cert, key)
		}
	}
	if _, err := Resources(settings(func(s *Settings) {
		s.Config = []byte(`{"tlsCertFile": "/", "tlsPrivateKeyFile": "b.key"}`)
	})); err == nil || !strings.Contains(err.Error(), "tlsCertFile") {
		t.Errorf("the root as a file: %v", err)
	}
}
