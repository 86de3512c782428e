package e2e

import (
	"strings"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
)

// TestCaseRegistry provisions a bare image at a site whose private registry lets
// in managed identities only: programs come out of artifacts and an image, and
// the identity's token goes to nobody but that registry.
func TestCaseRegistry(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	reg, s := serveImages(t, l), serveSite(t, l)
	cfg := nodeConfig(t, l, s.configure, func(c *aksnodeconfigv1.Configuration) {
		c.KubeBinaryConfig.PodInfraContainerImageUrl = reg.pushPause(t, l)
	})
	n := createNode(t, l, lab.NodeConfig{Name: "case-registry", Flavour: lab.Bare, UserData: customData(t, cfg), Files: reg.trust()})
	s.reachesNode(t, n)
	check(t, n.Start(within(t, time.Minute)))
	status := runCSE(t, n)
	if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
		t.Fatal(err)
	}
	checkStatus(t, status())
	t.Run("asked once", func(t *testing.T) { askedOnce(t, s) })
	t.Run("token", func(t *testing.T) { tokenStays(t, s, n) })
	checkWorkload(t, l, reg, reg.workload, "registry-pod", n)
	logFetching(t, n)
	s.forget()
	planIsEmpty(t, l, n)
	if n := len(s.registry.Requests()) + s.tokens(); n > 0 {
		t.Errorf("a plan cost %d requests", n)
	}
	badRegistries(t, s)
}

// forget empties the logs.
func (s *privateSite) forget() {
	for _, log := range []*serve.RequestLog{&s.registry.RequestLog, &s.registry.Blobs.RequestLog, &s.other.RequestLog, &s.metadata.RequestLog} {
		log.Clear()
	}
}

// askedOnce looks at what a node asked for: one token, and each blob in one go.
func askedOnce(t *testing.T, s *privateSite) {
	for _, b := range s.blobs {
		if n, bytes := s.registry.Blobs.Count(s.registry.Blobs.PathOf(b.Blob)); n != 1 || bytes != b.Size {
			t.Errorf("%s was asked for %d times, %d of %d bytes", b.Blob, n, bytes, b.Size)
		}
	}
	paths := map[string]int{}
	for _, r := range s.registry.Blobs.Requests() {
		if paths[r.Path]++; r.Status != 200 || paths[r.Path] > 1 {
			t.Errorf("store of blobs: %d to %s (%d times)", r.Status, r.Path, paths[r.Path])
		}
	}
	exchanges, _ := s.registry.Count("/oauth2/exchange")
	if exchanges != 1 || s.tokens() != 1 {
		t.Errorf("%d tokens of the identity, %d exchanges", s.tokens(), exchanges)
	}
	t.Logf("%d blobs, %d requests to the registry", len(paths), len(s.registry.Requests()))
}

// tokenStays proves that no token went where it does not belong: to the store of
// blobs, another registry, a log.
func tokenStays(t *testing.T, s *privateSite, n *lab.Node) {
	for _, r := range append(s.registry.Blobs.Requests(), s.other.Requests()...) {
		if r.Header.Get("Authorization") != "" || strings.Contains(r.Query, "eyJ") {
			t.Errorf("%s %s brings a token", r.Method, r.Path)
		}
	}
	if n := len(s.other.Requests()); n > 0 {
		t.Errorf("%d requests to another registry", n)
	}
	r, err := n.Exec(within(t, time.Minute), "grep", "-rl", tokenBeginning, "/var/log", "/var/lib/berth", "/run/berth", "/etc", "/opt/azure")
	if err != nil || len(r.Stdout) > 0 {
		t.Errorf("a token stands in %s (%v)", r.Stdout, err)
	}
}

// badRegistries are pulls that fail, on a machine that lacks only kubelet; the
// last one succeeds.
func badRegistries(t *testing.T, s *privateSite) {
	m := &badMachine{s.lab, addNode(t, s.lab, lab.NodeConfig{Name: "registry-bad"})}
	if _, err := m.node.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	s.reachesNode(t, m.node)
	run(t, m.node, "rm", "/opt/bin/kubelet")
	for _, c := range s.badPulls(t, m) {
		t.Run(c.name, func(t *testing.T) {
			s.forget()
			m.refuse(t, c)
		})
	}
	t.Run("another registry", func(t *testing.T) { s.notTheirs(t, m) })
	t.Run("metadata service", func(t *testing.T) { s.noTokens(t, m) })
	s.start(t)
	if r := m.provision(t, badCase{name: "good", config: s.pulling(t, m, s.kubernetes), within: 30 * time.Second}); r.Code != 0 {
		t.Fatalf("exit code %d\n%s", r.Code, r.Stderr)
	}
	if _, err := s.lab.WaitNodeReady(within(t, time.Minute), m.node.Name); err != nil {
		t.Fatal(err)
	}
}

// pulling is a document that has kubelet come from a reference.
func (s *privateSite) pulling(t *testing.T, m *badMachine, ref string, edit ...func(*aksnodeconfigv1.Configuration)) []byte {
	t.Helper()
	return m.document(t, append([]func(*aksnodeconfigv1.Configuration){s.identify, func(c *aksnodeconfigv1.Configuration) {
		c.KubeBinaryConfig.CustomKubeBinaryUrl = ref
	}}, edit...)...)
}

const kubeField = "kube_binary_config"

// soon gives little time to a run that would go on asking for minutes.
func soon(c *aksnodeconfigv1.Configuration) { c.CseTimeout = new(int32(10)) }

func as(client string) func(*aksnodeconfigv1.Configuration) {
	return func(c *aksnodeconfigv1.Configuration) { c.AuthConfig.AssignedIdentityId = client }
}

func (s *privateSite) badPulls(t *testing.T, m *badMachine) []badCase {
	t.Helper()
	untagged := strings.Replace(s.containerd, "tools/containerd:v1", "tools/kubernetes:v2", 1)
	return []badCase{
		{name: "no role", code: 212, field: kubeField, says: []string{s.registryName, "token exchange", "401"}, hint: "AcrPull", config: s.pulling(t, m, s.kubernetes, as(strangeClient))},
		{name: "unknown identity", code: 212, field: kubeField, says: []string{s.registryName, "Identity not found"}, hint: "assigned_identity_id", config: s.pulling(t, m, s.kubernetes, as("nobody"))},
		{name: "no such tag", code: 207, field: kubeField, says: []string{"manifest v2", "404", "MANIFEST_UNKNOWN"}, hint: "repository and tag", config: s.pulling(t, m, untagged)},
		{name: "closed port", code: 211, field: kubeField, says: []string{s.registryName + ":444", "connection refused"}, hint: "port",
			config: s.pulling(t, m, strings.Replace(s.kubernetes, s.registryName, s.registryName+":444", 1), soon)},
		{name: "no such name", code: 211, field: kubeField, says: []string{"gone." + s.suffix}, hint: "/etc/resolv.conf",
			config: s.pulling(t, m, strings.Replace(s.kubernetes, s.registryName, "gone."+s.suffix, 1), soon)},
		{name: "unknown CA", code: 211, field: kubeField, says: []string{"unknown authority"}, hint: "custom CAs",
			config: s.pulling(t, m, s.kubernetes, soon, func(c *aksnodeconfigv1.Configuration) { c.CustomCaCerts = nil })},
	}
}

// notTheirs names a registry outside the site's suffix, where the identity may
// pull: it is not told who asks.
func (s *privateSite) notTheirs(t *testing.T, m *badMachine) {
	s.forget()
	m.refuse(t, badCase{name: "other", code: 212, field: kubeField, says: []string{s.otherName, "401"}, hint: "container_registry_dns_suffix",
		config: s.pulling(t, m, strings.Replace(s.kubernetes, s.registryName, s.otherName, 1))})
	if n := s.tokens(); n > 0 {
		t.Errorf("%d tokens of the identity", n)
	}
	for _, r := range s.other.Requests() {
		if r.Path == "/oauth2/exchange" || r.Header.Get("Authorization") != "" {
			t.Errorf("%s %s: told who asks", r.Method, r.Path)
		}
	}
}

// noTokens has a metadata service that is of no use.
func (s *privateSite) noTokens(t *testing.T, m *badMachine) {
	c := badCase{name: "in trouble", code: 210, field: kubeField, says: []string{s.registryName, "instance metadata service", "503"}, hint: "169.254.169.254",
		config: s.pulling(t, m, s.kubernetes, soon)}
	s.metadata.Fail(1000, 503)
	m.refuse(t, c)
	s.metadata.Heal()
	if err := s.halt(); err != nil {
		t.Fatal(err)
	}
	c.name, c.says = "gone", []string{s.registryName, "instance metadata service", "connection refused"}
	m.refuse(t, c)
	mute := s.mute(t)
	defer func() { check(t, mute.Close()) }()
	c.name, c.says = "mute", []string{s.registryName, "instance metadata service"}
	m.refuse(t, c)
}
