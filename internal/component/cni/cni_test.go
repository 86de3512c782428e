package cni

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"text/template"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

// containerd is what the runtime fills the template with.
type containerd struct {
	PodCIDR               string
	PodCIDRRanges, Routes []string
}

func TestKubenet(t *testing.T) {
	r, err := Kubenet(false)
	if err != nil {
		t.Fatal(err)
	}
	text := string(r.(*desired.File).Content.Data())
	golden.Check(t, "kubenet_template.conf", text)
	for name, data := range map[string]containerd{
		"single.conflist": {"10.244.1.0/24", []string{"10.244.1.0/24"}, []string{"0.0.0.0/0"}},
		"dual.conflist":   {"10.244.1.0/24", []string{"10.244.1.0/24", "fd00:1::/64"}, []string{"0.0.0.0/0", "::/0"}},
	} {
		var b bytes.Buffer
		if err := template.Must(template.New("cni").Parse(text)).Execute(&b, data); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(b.Bytes()) {
			t.Errorf("%s is no JSON:\n%s", name, b.String())
		}
		golden.Check(t, name, b.String())
	}
}

// What is made of the template is recognised by its parts.
func TestKubenetMade(t *testing.T) {
	r, err := KubenetMade(false, "kubelet.service", "n1", "/var/lib/kubelet/kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	parts := r.(*desired.PodNetwork).Parts
	for _, name := range []string{"single.conflist", "dual.conflist"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		first, rest, ok := strings.Cut(string(text), parts[1])
		if !ok || len(parts) != 3 || !strings.HasPrefix(first, parts[0]) || !strings.HasSuffix(rest, parts[2]) {
			t.Errorf("%s is not made of %q", name, parts)
		}
	}
}

func TestDirectories(t *testing.T) {
	st := golden.State(t, Directories())
	for _, dir := range []string{ConfDir, BinDir} {
		if st.Lookup(desired.DirectoryID(dir)) == nil {
			t.Errorf("%s is missing", dir)
		}
	}
}

// TestAzure: the configuration is that of Azure's archive.
func TestAzure(t *testing.T) {
	r, err := Azure()
	if err != nil {
		t.Fatal(err)
	}
	f := golden.File(t, golden.State(t, []desired.Resource{r}), AzureFile)
	golden.Check(t, "azure.conflist", string(f.Content.Data()))
	if f.Mode != 0o600 || f.Life != desired.Seed {
		t.Errorf("mode %s, %s", f.Mode, f.Life)
	}
}
