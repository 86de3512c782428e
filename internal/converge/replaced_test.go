package converge_test

import (
	"context"
	"maps"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// store is a fetcher whose programs are their versions.
type store struct{}

func (store) Stage(_ context.Context, h host.Host, a *desired.Artifact) (converge.Staged, error) {
	for _, f := range a.Files {
		if err := host.Prepare(h, f.Path, []byte(a.Version), host.Attributes{Mode: f.Mode.Perm()}); err != nil {
			return converge.Staged{}, err
		}
	}
	return converge.Staged{URL: a.URLs[0]}, nil
}

func (store) Version(_ context.Context, h host.Host, p string) (string, error) {
	data, err := h.ReadFile(p)
	return string(data), err
}

func fetching(h host.Host) *converge.Engine {
	return engine(h, &providers{}, func(o *converge.Options) { o.Fetcher = store{} })
}

func kubelet(version string) *desired.Artifact {
	return &desired.Artifact{Name: "kubelet", URLs: []string{"https://packages/kubelet"}, Version: version,
		Files: []desired.ArtifactFile{{Path: "/opt/bin/kubelet", Mode: 0o755}}}
}

// others is the tree without berth's own state.
func others(h *machine) map[string]string {
	tree := h.Tree()
	maps.DeleteFunc(tree, func(p, _ string) bool {
		return strings.HasPrefix(p, "/var/lib/berth") || strings.HasPrefix(p, "/run/berth")
	})
	return tree
}

const wants = "/etc/systemd/system/multi-user.target.wants/containerd.service"

// Whatever berth replaced, took away or gave another mode is as it was when
// nothing wants it otherwise any more.
func TestReplacedComesBack(t *testing.T) {
	serving := &desired.ServingCertificate{CertFile: "/etc/kubernetes/s.crt", KeyFile: "/etc/kubernetes/s.key", Names: []string{"n1"}}
	unit := func(e desired.Enablement) *desired.Unit {
		return &desired.Unit{Name: "containerd.service", Enablement: e, Activation: desired.Stopped}
	}
	for name, c := range map[string]struct {
		arrange func(h *machine)
		want    desired.Resource
	}{
		"program":       {func(h *machine) { h.Put("/opt/bin/kubelet", "1.0.0", 0o750) }, kubelet("2.0.0")},
		"large program": {func(h *machine) { h.Put("/opt/bin/kubelet", strings.Repeat("1", 3<<20), 0o755) }, kubelet("2.0.0")},
		"program with two names": {func(h *machine) {
			h.Put("/opt/bin/kubelet", "1.0.0", 0o755)
			must(h.Link("/opt/bin/kubelet", "/opt/bin/hyperkube"))
		}, kubelet("2.0.0")},
		"link to a program": {func(h *machine) {
			must(h.Remove("/opt/bin/kubelet"))
			h.Put("/opt/bin/kubelet-1.0.0", "1.0.0", 0o755)
			h.PutLink("kubelet-1.0.0", "/opt/bin/kubelet", 0)
		}, &desired.Artifact{Name: "kubelet", URLs: []string{"https://packages/kubelet"}, Version: "2.0.0", SHA256: "x",
			Files: []desired.ArtifactFile{{Path: "/opt/bin/kubelet", Mode: 0o755}}}},
		"large file":      {func(h *machine) { h.Put("/etc/large", strings.Repeat("1", 3<<20), 0o640) }, managed("/etc/large", "small\n")},
		"mode of program": {func(h *machine) { h.Put("/opt/bin/kubelet", "2.0.0", 0o644) }, kubelet("2.0.0")},
		"mode of directory": {func(h *machine) {
			h.PutDir("/etc/kubernetes")
			must(h.Chmod("/etc/kubernetes", 0o750))
			must(h.Chown("/etc/kubernetes", 3, 4))
		}, &desired.Directory{Path: "/etc/kubernetes", Mode: 0o700}},
		"serving pair": {func(h *machine) {
			h.Put("/etc/kubernetes/s.crt", "old", 0o644)
			h.Put("/etc/kubernetes/s.key", "old", 0o600)
		}, serving},
		"mode of serving pair": {func(h *machine) {
			h.Put("/etc/kubernetes/s.crt", "cert [n1]", 0o600)
			h.Put("/etc/kubernetes/s.key", "serving key", 0o644)
		}, serving},
		"mask": {func(h *machine) { h.PutLink("/dev/null", "/etc/systemd/system/containerd.service", 0) }, unit(desired.AnyEnablement)},
		"link that enables": {func(h *machine) {
			h.PutLink("../other.service", wants, 0)
		}, unit(desired.Enabled)},
		"link that enabled": {func(h *machine) {
			h.PutLink("/usr/lib/systemd/system/containerd.service", wants, 0)
		}, unit(desired.Disabled)},
		"alias that leads nowhere": {func(h *machine) {
			h.Put("/usr/lib/systemd/system/containerd.service", containerdUnit+"Alias=cri.service\n", 0o644)
			h.PutLink("/usr/lib/systemd/system/gone.service", "/etc/systemd/system/cri.service", 0)
		}, unit(desired.Enabled)},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			c.arrange(h)
			h.Flush()
			before := others(h)
			e, want := fetching(h), sealed(t, c.want)
			res, err := e.Apply(t.Context(), want)
			if err != nil || res.Plan.Empty() {
				t.Fatalf("%v, %v", verbs(res.Plan), err)
			}
			again, err := e.Apply(t.Context(), want)
			if err != nil || !again.Plan.Empty() {
				t.Fatalf("again: %v, %v", verbs(again.Plan), err)
			}
			if diff := cmp.Diff(before, others(h)); diff == "" {
				t.Fatal("nothing was changed")
			}
			h.PowerCut(memory.LoseAll)
			h.Boot()
			res, err = e.Apply(t.Context(), sealed(t))
			if err != nil || len(res.Plan.Kept) > 0 {
				t.Fatalf("withdrawn: %q, %v", res.Plan.Kept, err)
			}
			h.PowerCut(memory.LoseAll)
			if diff := cmp.Diff(before, others(h)); diff != "" {
				t.Errorf("withdrawn: %s", diff)
			}
			if left, err := h.ReadDir("/var/lib/berth/originals"); err != nil || len(left) > 0 {
				t.Errorf("originals that are left: %v, %v", left, err)
			}
		})
	}
}

// elsewhere has its originals on another file system than its programs.
type elsewhere struct{ host.Host }

func (e elsewhere) Link(string, string) error { return syscall.EXDEV }

func TestProgramsOfAnotherFileSystem(t *testing.T) {
	h := newMachine()
	before := others(h)
	for _, s := range []*desired.State{sealed(t, kubelet("2.0.0")), sealed(t)} {
		if _, err := fetching(elsewhere{h}).Apply(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(before, others(h)); diff != "" {
		t.Error(diff)
	}
}

// Content that replaces a program of which only the mode was berth's: what comes
// back has its first mode.
func TestModeThenContent(t *testing.T) {
	h := newMachine()
	h.Put("/opt/bin/kubelet", "1.0.0", 0o644)
	before := others(h)
	for _, s := range []*desired.State{sealed(t, kubelet("1.0.0")), sealed(t, kubelet("2.0.0"))} {
		if _, err := fetching(h).Apply(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	has(t, h, "/opt/bin/kubelet", "2.0.0")
	if _, err := fetching(h).Apply(t.Context(), sealed(t)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, others(h)); diff != "" {
		t.Error(diff)
	}
}

// A mode that somebody else changed since is kept, and said.
func TestModeOfOthersStays(t *testing.T) {
	h := newMachine()
	h.PutDir("/etc/kubernetes")
	runs(t, h, sealed(t, &desired.Directory{Path: "/etc/kubernetes", Mode: 0o700}))
	must(h.Chmod("/etc/kubernetes", 0o711))
	if p := runs(t, h, sealed(t)); len(p.Kept) != 1 {
		t.Errorf("kept %q", p.Kept)
	}
	if info, err := h.Lstat("/etc/kubernetes"); err != nil || info.Mode.Perm() != 0o711 {
		t.Errorf("%v, %v", info.Mode, err)
	}
}

// What was taken away for a unit stays away as long as the unit is wanted so.
func TestTakenAwayStaysAway(t *testing.T) {
	h := newMachine()
	h.PutLink("/usr/lib/systemd/system/containerd.service", wants, 0)
	h.PutLink("/dev/null", "/etc/systemd/system/containerd.service", 0)
	off := &desired.Unit{Name: "containerd.service", Enablement: desired.Disabled}
	runs(t, h, sealed(t, off))
	for _, s := range []*desired.State{sealed(t, off, managed("/etc/more", "")), sealed(t, off)} {
		runs(t, h, s)
		for _, p := range []string{wants, "/etc/systemd/system/containerd.service"} {
			if _, err := h.Lstat(p); err == nil {
				t.Errorf("%s is there again", p)
			}
		}
	}
	h.PutLink("/dev/null", "/etc/systemd/system/containerd.service", 0)
	if p := runs(t, h, sealed(t, off)); len(p.Actions) == 0 {
		t.Error("a new mask stays")
	}
	on := &desired.Unit{Name: "containerd.service", Enablement: desired.Enabled}
	runs(t, h, sealed(t, on))
	runs(t, h, sealed(t))
	for _, p := range []string{wants, "/etc/systemd/system/containerd.service"} {
		if _, err := h.Readlink(p); err != nil {
			t.Error(err)
		}
	}
}
