package node

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
)

const pinOfNobody = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

func TestFromKubeadm(t *testing.T) {
	want := fresh()
	want.Cluster = v1alpha1.Cluster{Server: "https://10.0.0.1:6443", CACertHash: pinOfNobody}
	want.Identity = v1alpha1.Identity{BootstrapToken: &v1alpha1.BootstrapToken{TokenFile: "/etc/berth/token"}}
	want.Components.Kubernetes.Version = "1.36.3"
	for _, line := range []string{
		"kubeadm join 10.0.0.1:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash " + pinOfNobody,
		"sudo kubeadm join --token=abcdef.0123456789abcdef 10.0.0.1 --discovery-token abcdef.0123456789abcdef --discovery-token-ca-cert-hash=" + pinOfNobody + " -v 5 --ignore-preflight-errors=all",
		"10.0.0.1:6443 --tls-bootstrap-token abcdef.0123456789abcdef --discovery-token-ca-cert-hash " + pinOfNobody + " --cri-socket unix:///run/containerd/containerd.sock",
	} {
		got, err := FromKubeadm(strings.Fields(line), "1.36.3", SecretLocation{Dir: "/etc/berth"})
		if err != nil {
			t.Errorf("%s: %v", line, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", line, diff)
		}
	}
}

// What is printed is a document that is taken, the secret in it only where that is
// wanted.
func TestFromKubeadmInline(t *testing.T) {
	c, err := FromKubeadm(strings.Fields("join [fd00::1]:443 --node-name Edge-7 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash "+pinOfNobody), "1.36.3", SecretLocation{Inline: true})
	if err != nil {
		t.Fatal(err)
	}
	text, err := Text(c)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := Decode(text)
	if err != nil || doc.Config.Identity.BootstrapToken.Token != "abcdef.0123456789abcdef" || doc.Config.Node.Name != "edge-7" {
		t.Errorf("%v\n%s", err, text)
	}
	if strings.Contains(string(text), "{}") || strings.Contains(string(text), "null") {
		t.Errorf("it says what it does not say:\n%s", text)
	}
}

func TestFromKubeadmRefuses(t *testing.T) {
	const token, hash = " --token abcdef.0123456789abcdef", " --discovery-token-ca-cert-hash " + pinOfNobody
	for line, want := range map[string]string{
		"join" + token + hash:     "one address",
		"join a b" + token + hash: "one address",
		"join a" + hash:           "one token",
		"join a --discovery-token 000000.0000000000000000" + token + hash: "one token",
		"join a --token SECRETSECRET" + hash:                              "id.secret",
		"join a" + token:                                                  "ca-cert-hash",
		"join a --discovery-token-unsafe-skip-ca-verification" + token:    "unknown flag",
		"join a --control-plane" + token + hash:                           "unknown flag",
		"join a --cri-socket unix:///run/crio.sock" + token + hash:        "--cri-socket",
		"join a:0" + token + hash:                                         "cluster.server",
	} {
		_, err := FromKubeadm(strings.Fields(line), "1.36.3", SecretLocation{Dir: "/etc/berth"})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func TestViewShowsDefaultsAndNoSecret(t *testing.T) {
	doc := decoded(t, "discovery.yaml")
	before := doc.Config.Identity.BootstrapToken.Token
	text, err := Text(View(doc))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"maxPods: 110", "mode: cluster", "clusterDomain: cluster.local", "token: REDACTED#"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if doc.Config.Identity.BootstrapToken.Token != before {
		t.Error("the document itself is redacted")
	}
}
