package nodeconfigutils_test

import (
	"os/exec"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

func TestMarshal(t *testing.T) {
	cfg := sample(t, "full")
	text, err := nodeconfigutils.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "full.json", text)
	again, err := nodeconfigutils.Unmarshal(text)
	if err != nil || !proto.Equal(cfg, again) {
		t.Errorf("does not come back: %v", err)
	}
}

func TestUnmarshalTakesWhatIsIncomplete(t *testing.T) {
	cfg, err := nodeconfigutils.Unmarshal([]byte(`{"vmSize": "Standard_D2s_v5", "later": 1}`))
	if err != nil || cfg.GetVmSize() != "Standard_D2s_v5" {
		t.Error(cfg, err)
	}
	_, err = nodeconfigutils.Unmarshal([]byte("{\n \"version\": 1,\n \"is_kata\": 2\n}"))
	const want = "configuration refused, 2 errors:\n" +
		"  line 2, column 13: version: Invalid value: \"1\": expected a string, got a number\n" +
		"  line 3, column 13: is_kata: Invalid value: \"2\": expected true or false, got a number"
	if err == nil || err.Error() != want {
		t.Error(err)
	}
}

// Clients build this package: what it imports is part of its interface.
func TestDependenciesStayFew(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{
		"google.golang.org/protobuf/", "github.com/berth-dev/berth/api/aksnodeconfig/", "github.com/berth-dev/berth/pkg/nodeconfigutils",
		"github.com/berth-dev/berth/internal/contract/aks/decode", "github.com/berth-dev/berth/internal/contract/value", "github.com/berth-dev/berth/internal/desired", "github.com/berth-dev/berth/internal/lazyregexp", "github.com/berth-dev/berth/internal/unitname",
		"github.com/berth-dev/berth/internal/ignition",
		"k8s.io/apimachinery/pkg/util/", "k8s.io/apimachinery/pkg/api/validate/",
	}
	for _, path := range strings.Fields(string(out)) {
		ok := false
		for _, prefix := range allowed {
			ok = ok || strings.HasPrefix(path, prefix)
		}
		if !ok {
			t.Errorf("imports %s", path)
		}
	}
}
