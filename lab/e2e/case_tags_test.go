package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	rotationTag   = "aks-disable-kubelet-serving-certificate-rotation"
	rotationField = "kubelet_config.kubelet_config_file_config.server_tls_bootstrap"
	servingCA     = "kubernetes.azure.com/kubelet-serving-ca"
	ownServing    = "/etc/kubernetes/certs/kubeletserver.crt"
)

// rotating has kubelet ask the cluster for its serving certificate.
func rotating(c *aksnodeconfigv1.Configuration) {
	c.KubeletConfig.EnableKubeletConfigFile = true
	c.KubeletConfig.KubeletConfigFileConfig = &aksnodeconfigv1.KubeletConfigFileConfig{
		ServerTlsBootstrap: true, TlsCertFile: ownServing, TlsPrivateKeyFile: strings.TrimSuffix(ownServing, "crt") + "key"}
}

// tagged is a machine of a cloud whose owner tags it.
type tagged struct {
	*badMachine
	site *metadataService
}

// tag sets the tags that the machine's metadata tell.
func (m *tagged) tag(tags ...serve.Tag) {
	m.site.metadata.SetInstance(m.node.IP, serve.NewInstance(m.node.Name, "00000000-0000-0000-0000-000000000009", "02:00:00:00:00:09",
		m.node.IP.String(), "10.99.0.0", 24, tags...))
}

// TestTags: a tag of the virtual machine takes kubelet's serving certificate out of
// the cluster's hands, and what the metadata service does not tell changes nothing.
// The image is laid out as published ones are.
func TestTags(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	m := &tagged{&badMachine{l, addNode(t, l, lab.NodeConfig{Name: "tagged"})}, newMetadata(t, l)}
	m.site.reachesNode(t, m.node)
	if _, err := m.node.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	kubelet := layOut(t, m.node, l.KubernetesVersion())
	m.configure(t, m.document(t, rotating))
	m.mute(t, false)
	m.site.start(t)
	m.tag(serve.Tag{Name: "owner", Value: "lab"}, serve.Tag{Name: strings.ToUpper(rotationTag), Value: "True"})
	m.says(t, "before the first run", true)
	run(t, m.node, controllerPath, "provision", "--provision-config="+configPath)
	if _, err := l.WaitNodeReady(within(t, time.Minute), m.node.Name); err != nil {
		t.Fatal(err)
	}
	m.servesItself(t)
	runPod(t, l, "tagged", m.node.Name)
	checkLayout(t, m.node, kubelet)
	planIsEmpty(t, l, m.node)
	m.site.metadata.Fail(1000, 503)
	planIsEmpty(t, l, m.node)
	m.site.metadata.Heal()
	check(t, m.site.halt())
	planIsEmpty(t, l, m.node)
	m.mute(t, true)
	m.site.start(t)
	m.tag(serve.Tag{Name: rotationTag, Value: "false"})
	m.untagged(t)
}

// mute has a metadata service that takes connections and never answers: a plan is
// made all the same, with what is known.
func (m *tagged) mute(t *testing.T, known bool) {
	mute := m.site.mute(t)
	defer func() { check(t, mute.Close()) }()
	start := time.Now()
	m.says(t, "mute", known)
	if took := time.Since(start); took > loaded*5*time.Second || mute.Accepted() == 0 {
		t.Errorf("%d connections, a plan after %s", mute.Accepted(), took)
	}
}

// says proves what a plan makes of the tags: whether the field has no effect.
func (m *tagged) says(t *testing.T, when string, off bool) {
	t.Helper()
	r := m.exec(t, berthPath, "plan", "-f", configPath, "-o", "json")
	var p struct {
		Unused []struct{ Path, Reason string }
	}
	if err := json.Unmarshal(r.Stdout, &p); err != nil {
		t.Fatalf("%s: %v\n%s%s", when, err, r.Stdout, r.Stderr)
	}
	got := slices.ContainsFunc(p.Unused, func(u struct{ Path, Reason string }) bool {
		return u.Path == rotationField && strings.Contains(u.Reason, "a tag of the virtual machine")
	})
	if got != off {
		t.Errorf("%s: the plan says that %s is unused because of a tag: %v, want %v", when, rotationField, got, off)
	}
}

// servesItself: kubelet has a pair of its own and asks nobody for another.
func (m *tagged) servesItself(t *testing.T) {
	t.Helper()
	if got, own := m.served(t), read(t, m.node, ownServing); strings.TrimSpace(got) != strings.TrimSpace(own) {
		t.Errorf("kubelet serves with\n%s, not\n%s", got, own)
	}
	node, err := m.lab.Client().CoreV1().Nodes().Get(within(t, 10*time.Second), m.node.Name, metav1.GetOptions{})
	if err != nil || node.Labels[servingCA] != "" {
		t.Errorf("labels %v, %v", node.Labels, err)
	}
	if got := m.requests(t); got != 0 {
		t.Errorf("%d requests for a serving certificate", got)
	}
}

// untagged: without the tag the plan starts kubelet again, which then asks the
// cluster for its certificate; nothing is left of its own.
func (m *tagged) untagged(t *testing.T) {
	t.Helper()
	want := []string{"file:/etc/default/kubelet update", "file:/etc/default/kubeletconfig.json update", "unit:kubelet.service restart"}
	// A plan does not wait for metadata that comes late: a busy machine may need another.
	eventually(t, fmt.Sprintf("%q in the plan", want), 10*time.Second, func() bool {
		ids := plan(t, m.node).ids()
		return !slices.ContainsFunc(want, func(id string) bool { return !slices.Contains(ids, id) })
	})
	eventually(t, "an apply that the metadata did not come too late for", 30*time.Second, func() bool {
		run(t, m.node, berthPath, "apply", "-f", configPath)
		return !m.node.Exists(ownServing)
	})
	planIsEmpty(t, m.lab, m.node) // what is known by now is that there is no such tag
	eventually(t, "a request for a serving certificate", 30*time.Second, func() bool { return m.requests(t) > 0 })
	node, err := m.lab.Client().CoreV1().Nodes().Get(within(t, 10*time.Second), m.node.Name, metav1.GetOptions{})
	if err != nil || node.Labels[servingCA] != "cluster" || m.node.Exists(ownServing) {
		t.Errorf("labels %v, %v; %s is there: %v", node.Labels, err, ownServing, m.node.Exists(ownServing))
	}
}

// served is the body of the certificate that kubelet shows, in PEM.
func (m *tagged) served(t *testing.T) string {
	t.Helper()
	return run(t, m.node, "sh", "-c", "openssl s_client -connect 127.0.0.1:10250 </dev/null 2>/dev/null | openssl x509")
}

// requests are those for a serving certificate that this node has made.
func (m *tagged) requests(t *testing.T) int {
	t.Helper()
	all, err := m.lab.Client().CertificatesV1().CertificateSigningRequests().List(within(t, 10*time.Second),
		metav1.ListOptions{FieldSelector: "spec.signerName=" + certificatesv1.KubeletServingSignerName})
	if err != nil {
		t.Fatal(err)
	}
	return len(slices.DeleteFunc(all.Items, func(r certificatesv1.CertificateSigningRequest) bool {
		return r.Spec.Username != "system:node:"+m.node.Name
	}))
}

// listedServers is what systemd-resolved keeps: a domain tells it from what the lab's
// image has.
const listedServers = "/run/systemd/resolve/resolv.conf"

// layOut makes a machine one of a published image: kubelet stands under the name of
// its version, and systemd-resolved keeps the list of servers.
func layOut(t *testing.T, n *lab.Node, version string) (kubelet string) {
	t.Helper()
	kubelet = "/opt/bin/kubelet-" + strings.TrimPrefix(version, "v")
	run(t, n, "mv", "/opt/bin/kubelet", kubelet)
	run(t, n, "sh", "-c", "mkdir -p /run/systemd/resolve; (cat /etc/resolv.conf; echo search listed.lab.test) >"+listedServers)
	return kubelet
}

// checkLayout: that kubelet runs, and pods ask the servers of the list.
func checkLayout(t *testing.T, n *lab.Node, kubelet string) {
	t.Helper()
	for name, target := range map[string]string{"/opt/bin/kubelet": kubelet, "/etc/resolv.conf": listedServers} {
		if got := strings.TrimSpace(run(t, n, "readlink", name)); got != target {
			t.Errorf("%s leads to %s, want %s", name, got, target)
		}
	}
	if got := run(t, n, "sh", "-c", "readlink /proc/$(systemctl show -p MainPID --value kubelet)/exe"); strings.TrimSpace(got) != kubelet {
		t.Errorf("kubelet is %s", got)
	}
	run(t, n, "sh", "-c", "grep -l listed.lab.test /var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/*/resolv.conf")
}
