package identity

import (
	"crypto/x509/pkix"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// put writes a credential as the engine would.
func put(m *memory.Host, files []converge.CredentialFile) {
	for _, f := range files {
		if f.Target != "" {
			m.PutLink(f.Target, f.Path, 0)
			continue
		}
		m.Put(f.Path, string(f.Content.Data()), 0o600)
	}
}

// joined is a machine with a credential of the cluster.
func joined(t *testing.T, c *cluster, subject pkix.Name, life time.Duration) (clock, *desired.ClientCertificate) {
	t.Helper()
	m := clock{memory.New(), 0}
	key, _ := newKey()
	keyPEM, _ := encodeKey(key)
	d := c.wants(time.Second)
	files, err := New(m).Files(d, converge.Credential{Certificate: c.issue(subject, &key.PublicKey, life), Key: keyPEM})
	if err != nil {
		t.Fatal(err)
	}
	put(m.Host, files)
	m.Put(d.CAFile, c.ca, 0o644)
	return m, d
}

func nodeName(name string) pkix.Name {
	return pkix.Name{CommonName: nodeUserPrefix + name, Organization: []string{nodesGroup}}
}

func TestValid(t *testing.T) {
	c := newCluster(t)
	other, _, err := SelfSigned([]string{"other"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	const current = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	for _, tc := range []struct {
		name    string
		subject pkix.Name
		life    time.Duration
		change  func(clock, *desired.ClientCertificate)
		reason  string // "" is valid
	}{
		{"as issued", nodeName("n1"), time.Hour, nil, ""},
		{"server with its default port", nodeName("n1"), time.Hour, func(m clock, d *desired.ClientCertificate) { d.Server += "/" }, ""},
		{"CA file gone", nodeName("n1"), time.Hour, func(m clock, d *desired.ClientCertificate) { _ = m.Remove(d.CAFile) }, ""},
		{"CA file edited", nodeName("n1"), time.Hour, func(m clock, d *desired.ClientCertificate) { m.Put(d.CAFile, "edited", 0o644) }, ""},
		{"CA bundle grew", nodeName("n1"), time.Hour, func(_ clock, d *desired.ClientCertificate) { d.CA += string(other) }, ""},
		{"other CA", nodeName("n1"), time.Hour, func(m clock, d *desired.ClientCertificate) { m.Put(d.CAFile, string(other), 0o644) }, "another cluster's"},
		{"CA elsewhere", nodeName("n1"), time.Hour, func(_ clock, d *desired.ClientCertificate) { d.CAFile = "/etc/other.crt" }, "kubeconfig names CA"},
		{"other server", nodeName("n1"), time.Hour, func(_ clock, d *desired.ClientCertificate) { d.Server = "https://other:443" }, "names server"},
		{"other node", nodeName("n2"), time.Hour, nil, "system:node:n2"},
		{"no group", pkix.Name{CommonName: "system:node:n1"}, time.Hour, nil, "system:nodes"},
		{"expired", nodeName("n1"), -time.Minute, nil, "expired at"},
		{"about to expire", nodeName("n1"), time.Minute, nil, "expires at"},
		{"no kubeconfig", nodeName("n1"), time.Hour, func(m clock, d *desired.ClientCertificate) { _ = m.Remove(d.Kubeconfig) }, "read kubeconfig"},
		{"broken kubeconfig", nodeName("n1"), time.Hour, func(m clock, d *desired.ClientCertificate) { m.Put(d.Kubeconfig, "{", 0o600) }, "parse kubeconfig"},
		{"no pair", nodeName("n1"), time.Hour, func(m clock, _ *desired.ClientCertificate) { _ = m.Remove(current) }, "client certificate"},
		{"broken pair", nodeName("n1"), time.Hour, func(m clock, _ *desired.ClientCertificate) {
			_ = m.Remove(current)
			m.Put(current, "text", 0o600)
		}, "certificate and key"},
		{"link to itself", nodeName("n1"), time.Hour, func(m clock, _ *desired.ClientCertificate) {
			_ = m.Remove(current)
			m.PutLink(current, current, 0)
		}, "too many links"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, d := joined(t, c, tc.subject, tc.life)
			if tc.change != nil {
				tc.change(m, d)
			}
			ok, reason, err := New(m).Valid(m, d)
			if err != nil || ok != (tc.reason == "") || !strings.Contains(reason, tc.reason) {
				t.Errorf("got %v, %q, %v", ok, reason, err)
			}
		})
	}
}

func TestValidOnAClockThatIsBehind(t *testing.T) {
	m, d := joined(t, newCluster(t), nodeName("n1"), time.Hour)
	m.skew = -24 * time.Hour
	if ok, reason, err := New(m).Valid(m, d); ok || err != nil || !strings.Contains(reason, "the clock says") {
		t.Errorf("got %v, %q, %v", ok, reason, err)
	}
}

func TestFiles(t *testing.T) {
	m := memory.New()
	d := &desired.ClientCertificate{NodeName: "n1", Server: "https://api:443", CA: "x", CAFile: "/etc/kubernetes/certs/ca.crt",
		Kubeconfig: "/var/lib/kubelet/kubeconfig", CertDir: "/var/lib/kubelet/pki"}
	files, err := New(m).Files(d, converge.Credential{Certificate: []byte("CERT\n"), Key: []byte("KEY\n")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		if f.Target != "" {
			got = append(got, f.Path+" -> "+f.Target)
			continue
		}
		got = append(got, fmt.Sprintf("%s %v\n%s", f.Path, f.Content.IsSecret(), f.Content.Data()))
	}
	pair := "/var/lib/kubelet/pki/kubelet-client-berth.pem"
	want := []string{
		pair + " true\nCERT\nKEY\n",
		"/var/lib/kubelet/pki/kubelet-client-current.pem -> " + pair,
		`/var/lib/kubelet/kubeconfig false
apiVersion: v1
clusters:
- cluster:
    certificate-authority: /etc/kubernetes/certs/ca.crt
    server: https://api:443
  name: default-cluster
contexts:
- context:
    cluster: default-cluster
    namespace: default
    user: default-auth
  name: default-context
current-context: default-context
kind: Config
users:
- name: default-auth
  user:
    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem
    client-key: /var/lib/kubelet/pki/kubelet-client-current.pem
`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestServing(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	names := []string{"n1", "10.0.0.4", "fd00::4"}
	cert, key, err := SelfSigned(names, now)
	if err != nil {
		t.Fatal(err)
	}
	_, otherKey, err := SelfSigned(names, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		key    []byte
		names  []string
		now    time.Time
		reason string
	}{
		{"as made", key, names, now, ""},
		{"in 19 years", key, names, now.AddDate(19, 0, 0), ""},
		{"in 20 years", key, names, now.AddDate(20, 0, 0), "expired"},
		{"days before its end", key, names, now.Add(7290 * 24 * time.Hour), "expires at"},
		{"before it was made", key, names, now.AddDate(-1, 0, 0), "valid from"},
		{"another name", key, []string{"n2"}, now, "not for n2"},
		{"another address", key, []string{"10.0.0.5"}, now, "not for 10.0.0.5"},
		{"another key", otherKey, names, now, "private key does not match"},
		{"no key", nil, names, now, "certificate and key"},
	} {
		ok, reason := ServingValid(cert, tc.key, tc.names, tc.now)
		if ok != (tc.reason == "") || !strings.Contains(reason, tc.reason) {
			t.Errorf("%s: got %v, %q", tc.name, ok, reason)
		}
	}
	if _, _, err := SelfSigned(nil, now); err == nil {
		t.Error("a certificate for nobody")
	}
}

func FuzzPairProblem(f *testing.F) {
	cert, key, err := SelfSigned([]string{"n1"}, time.Now())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(cert, key)
	f.Add(append(cert, key...), append(cert, key...))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----"), []byte(""))
	f.Fuzz(func(t *testing.T, cert, key []byte) {
		if pairProblem(cert, key, nodeSubject("n1"), time.Now(), 0) == "" {
			t.Error("a serving certificate is no node's client certificate")
		}
		ServingValid(cert, key, []string{"n1"}, time.Now())
		parseCertificates(cert)
		_, _ = decodeKey(key)
	})
}
