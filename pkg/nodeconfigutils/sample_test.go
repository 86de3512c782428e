package nodeconfigutils_test

import (
	"encoding/base64"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func sample(t testing.TB, name string) *aksnodeconfigv1.Configuration {
	t.Helper()
	data, err := os.ReadFile("../../internal/contract/aks/testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := nodeconfigutils.Unmarshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func decoded(t *testing.T, text string, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	out, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
