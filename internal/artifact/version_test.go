package artifact

import (
	"errors"
	"io/fs"
	"net/url"
	"runtime/debug"
	"testing"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

func mustURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

func TestModuleVersion(t *testing.T) {
	mod := func(path, version string) *debug.Module { return &debug.Module{Path: path, Version: version} }
	for _, tc := range []struct {
		name string
		info debug.BuildInfo
		want string
	}{
		{"kubelet installed by go", debug.BuildInfo{Main: *mod("k8s.io/kubernetes", "v1.36.3")}, "1.36.3"},
		{"kubelet from its own tree", debug.BuildInfo{Main: *mod("k8s.io/kubernetes", "(devel)")}, ""},
		{"kubelet as a dependency", debug.BuildInfo{Main: *mod("x/images", "(devel)"), Deps: []*debug.Module{mod("github.com/opencontainers/runc", "v1.2.3"), mod("k8s.io/kubernetes", "v1.36.3")}}, "1.36.3"},
		{"containerd", debug.BuildInfo{Main: *mod("github.com/containerd/containerd/v2", "v2.2.9")}, "2.2.9"},
		{"replaced", debug.BuildInfo{Main: *mod("x", "(devel)"), Deps: []*debug.Module{{Path: "github.com/opencontainers/runc", Version: "v1.4.0", Replace: mod("fork/runc", "v1.4.1")}}}, "1.4.1"},
		{"release candidate", debug.BuildInfo{Main: *mod("k8s.io/kubernetes", "v1.37.0-rc.1")}, "1.37.0-rc.1"},
		{"between releases", debug.BuildInfo{Main: *mod("k8s.io/kubernetes", "v1.36.4-0.20261101000000-abcdefabcdef")}, ""},
		{"changed tree", debug.BuildInfo{Main: *mod("k8s.io/kubernetes", "v1.36.3+dirty")}, ""},
		{"another program", debug.BuildInfo{Main: *mod("x/y", "v0.3.1")}, "0.3.1"},
	} {
		if got := moduleVersion(&tc.info); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestParseSpoken(t *testing.T) {
	for text, want := range map[string]string{
		"Kubernetes v1.36.3\n": "1.36.3",
		"containerd github.com/containerd/containerd/v2 v2.2.9 abc123\n":     "2.2.9",
		"containerd containerd.io 1.7.27-ubuntu24.04u1 abc":                  "1.7.27",
		"runc version 1.4.0\ncommit: v1.4.0-0-gabc\nspec: 1.3.0\ngo: go1.26": "1.4.0",
		"Client Version: v1.36.3\nKustomize Version: v5.7.1":                 "1.36.3",
		"Kubernetes v1.37.0-alpha.2\n":                                       "1.37.0-alpha.2",
		"CNI bridge plugin v1.8.0\n":                                         "1.8.0",
		"no version here 1.2":                                                "",
		"":                                                                   "",
	} {
		if got := parseSpoken(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestVersionAsksOnceForEachFile(t *testing.T) {
	m := memory.New()
	asked := 0
	says := "Kubernetes v1.36.3\n"
	m.Program("/opt/bin/kubelet", func(c host.Command) host.Output { asked++; return host.Output{Stdout: []byte(says)} })
	m.PutLink("../../opt/bin/kubelet", "/usr/bin/kubelet", 0)
	f := New(Options{})
	for _, fetcher := range []*Fetcher{f, f, New(Options{})} { // the last one reads what is kept
		if got, err := fetcher.Version(t.Context(), m, "/usr/bin/kubelet"); got != "1.36.3" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	says = "Kubernetes v1.36.4\n"
	if err := m.Remove("/opt/bin/kubelet"); err != nil {
		t.Fatal(err)
	}
	m.Put("/opt/bin/kubelet", "another file", 0o755)
	if got, err := f.Version(t.Context(), m, "/usr/bin/kubelet"); got != "1.36.4" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestVersionOfWhatDoesNotTell(t *testing.T) {
	m := memory.New()
	m.Put("/usr/bin/data", "text", 0o644)
	m.Put("/var/lib/berth/cache/versions.json", "null", 0o600)
	if got, err := New(Options{}).Version(t.Context(), m, "/usr/bin/data"); got != "" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := New(Options{}).Version(t.Context(), m, "/usr/bin/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func FuzzParseSpoken(f *testing.F) {
	f.Add("Kubernetes v1.36.3")
	f.Fuzz(func(t *testing.T, text string) {
		if v := parseSpoken(text); v != "" && release("v"+v) != v && v[0] != '0' {
			t.Errorf("%q: %q is no release", text, v)
		}
	})
}
