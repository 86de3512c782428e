package serve

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func names(t *testing.T, file string) []string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h.Name)
	}
}

func TestLayouts(t *testing.T) {
	dir := t.TempDir()
	program := func(name string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(name), 0o700); err != nil {
			t.Fatal(err)
		}
		return p
	}
	tests := map[string]struct {
		entries []Entry
		want    []string
	}{
		"kubernetes": {KubernetesNode(program("kubelet"), program("kubectl")), []string{
			"kubernetes/", "kubernetes/LICENSES", "kubernetes/node/", "kubernetes/node/bin/",
			"kubernetes/node/bin/kubectl", "kubernetes/node/bin/kubelet",
		}},
		"containerd": {Containerd(program("containerd"), program("runc")), []string{"bin/", "bin/containerd", "bin/runc"}},
		"cni":        {CNIPlugins(program("ptp"), program("bridge")), []string{"./bridge", "./ptp"}},
		"provider":   {CredentialProvider(program("acr")), []string{"acr"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(dir, "out.tgz")
			first, err := WriteTarGz(out, gzip.BestSpeed, test.entries...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, names(t, out)); diff != "" {
				t.Error(diff)
			}
			for i := range test.entries {
				if source := test.entries[i].Source; source != "" {
					if err := os.Chtimes(source, time.Now(), time.Unix(int64(i), 0)); err != nil {
						t.Fatal(err)
					}
				}
			}
			test.entries[0], test.entries[len(test.entries)-1] = test.entries[len(test.entries)-1], test.entries[0]
			again, err := WriteTarGz(out, gzip.BestSpeed, test.entries...)
			if err != nil || first != again {
				t.Errorf("digests %s and %s, %v", first, again, err)
			}
			if added, err := NewArtifacts().AddFile("x", out); err != nil || added.SHA256 != first {
				t.Errorf("served as %+v, %v", added, err)
			}
		})
	}
}
