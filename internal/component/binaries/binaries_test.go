package binaries

import (
	"encoding/json"
	"testing"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

func TestArtifacts(t *testing.T) {
	for name, source := range map[string]Source{
		"in-image.json": {}, "fetched.json": {URL: "https://packages.example/x.tar.gz#sha256=00", Version: "1.2.3"},
	} {
		st := golden.State(t, []desired.Resource{
			Kubernetes(source, Kubectl), Containerd(source, "/usr/bin/containerd"), Runc(source, "/usr/bin/runc"),
			CNI(source, "bridge", "loopback"),
		})
		b, err := json.MarshalIndent(st, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name, string(b)+"\n")
	}
}
