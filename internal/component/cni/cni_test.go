package cni

import (
	"bytes"
	"encoding/json"
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
	r, err := Kubenet()
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

func TestDirectories(t *testing.T) {
	st := golden.State(t, Directories())
	for _, dir := range []string{ConfDir, BinDir} {
		if st.Lookup(desired.DirectoryID(dir)) == nil {
			t.Errorf("%s is missing", dir)
		}
	}
}
