package converge_test

import (
	"context"
	"io/fs"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// shelf hands out a program without a network.
type shelf struct{}

func (shelf) Stage(_ context.Context, h host.Host, a *desired.Artifact) (converge.Staged, error) {
	for _, f := range a.Files {
		if err := host.Prepare(h, f.Path, []byte("program"), host.Attributes{Mode: f.Mode.Perm()}); err != nil {
			return converge.Staged{}, err
		}
	}
	return converge.Staged{URL: a.Addresses()[0]}, nil
}

func (shelf) Version(context.Context, host.Host, string) (string, error) { return "", nil }

// Programs that were downloaded are kept as downloaded; those of the image are
// only made to run.
func TestProgramDrift(t *testing.T) {
	const runc, kubelet = "/usr/local/sbin/runc", "/opt/bin/kubelet"
	st := &desired.State{Owner: desired.OwnerAKS}
	st.Add(
		&desired.Artifact{Name: "runc", URLs: []string{"https://runc"}, Files: []desired.ArtifactFile{{Path: runc, Mode: 0o755}}},
		&desired.Artifact{Name: "kubernetes", Files: []desired.ArtifactFile{{Path: kubelet, Mode: 0o755}}})
	if err := st.Seal(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		do   func(h *machine)
		plan []string
		mode map[string]fs.FileMode
	}{
		"download edited":    {func(h *machine) { h.Put(runc, "program and more", 0o755) }, []string{"fetch artifact:runc"}, nil},
		"download altered":   {func(h *machine) { h.Overwrite(runc, "PROGRAM") }, []string{"fetch artifact:runc"}, nil},
		"download copied":    {func(h *machine) { h.Put(runc, "program", 0o755) }, []string{}, nil},
		"download removed":   {func(h *machine) { must(h.Remove(runc)) }, []string{"fetch artifact:runc"}, nil},
		"download chmodded":  {func(h *machine) { must(h.Chmod(runc, 0o644)) }, []string{"update artifact:runc"}, nil},
		"download chowned":   {func(h *machine) { must(h.Chown(runc, 7, 7)) }, []string{"update artifact:runc"}, nil},
		"image's edited":     {func(h *machine) { h.Put(kubelet, "another", 0o755) }, []string{}, nil},
		"image's, tightened": {func(h *machine) { must(h.Chmod(kubelet, 0o700)) }, []string{}, map[string]fs.FileMode{kubelet: 0o700}},
		"image's can't run":  {func(h *machine) { must(h.Chmod(kubelet, 0o644)) }, []string{"update artifact:kubernetes"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			e := converge.New(converge.Options{Host: h, Providers: converge.Providers{Fetcher: shelf{}}})
			if _, err := e.Apply(t.Context(), st); err != nil {
				t.Fatal(err)
			}
			must(e.Remember(t.Context(), st))
			c.do(h)
			res, err := e.Apply(t.Context(), st)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.plan, verbs(res.Plan)); diff != "" {
				t.Error(diff)
			}
			if p, err := e.Plan(t.Context(), st); err != nil || !p.Empty() {
				t.Errorf("plan after repair: %v, %v", verbs(p), err)
			}
			for _, path := range []string{runc, kubelet} {
				want, ok := c.mode[path]
				if !ok {
					want = 0o755
				}
				if info, err := h.Lstat(path); err != nil || info.Mode.Perm() != want || info.UID != 0 {
					t.Errorf("%s: %v, %v", path, info, err)
				}
			}
		})
	}
}

// A program that is altered before anybody has read it is not trusted: nothing else may
// touch it between the end of a run and the time at which it is read.
func TestProgramDriftBeforeItIsRead(t *testing.T) {
	const runc = "/usr/local/sbin/runc"
	st := sealed(t, &desired.Artifact{Name: "runc", URLs: []string{"https://runc"}, Files: []desired.ArtifactFile{{Path: runc, Mode: 0o755}}})
	for name, c := range map[string]struct {
		do   func(h *machine)
		plan []string
	}{
		"as it was": {func(*machine) {}, []string{}},
		"edited":    {func(h *machine) { h.Put(runc, "program and more", 0o755) }, []string{"fetch artifact:runc"}},
		"altered":   {func(h *machine) { h.Overwrite(runc, "PROGRAM") }, []string{"fetch artifact:runc"}},
		"another":   {func(h *machine) { h.Put(runc, "PROGRAM", 0o755) }, []string{"fetch artifact:runc"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			e := converge.New(converge.Options{Host: h, Providers: converge.Providers{Fetcher: shelf{}}})
			if _, err := e.Apply(t.Context(), st); err != nil {
				t.Fatal(err)
			}
			c.do(h)
			must(e.Remember(t.Context(), st))
			res, err := e.Apply(t.Context(), st)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.plan, verbs(res.Plan)); diff != "" {
				t.Error(diff)
			}
			has(t, h, runc, "program")
			if p, err := e.Plan(t.Context(), st); err != nil || !p.Empty() {
				t.Errorf("plan after repair: %v, %v", verbs(p), err)
			}
		})
	}
}

// What an image holds is trusted by size and time, since copies have other inodes.
func TestProgramOfAnImageBuild(t *testing.T) {
	const runc = "/usr/local/sbin/runc"
	st := sealed(t, &desired.Artifact{Name: "runc", URLs: []string{"https://runc"}, Files: []desired.ArtifactFile{{Path: runc, Mode: 0o755}}})
	h := newMachine()
	if _, err := converge.New(converge.Options{Host: h, Providers: converge.Providers{Fetcher: shelf{}}, Offline: true}).Apply(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	must(h.Chmod(runc, 0o700)) // a copy has another time of change
	must(h.Chmod(runc, 0o755))
	if p, err := converge.New(converge.Options{Host: h, Providers: converge.Providers{Fetcher: shelf{}}}).Plan(t.Context(), st); err != nil || !p.Empty() {
		t.Errorf("%v, %v", verbs(p), err)
	}
}

// A program that somebody put in the place of a download is theirs: it stays when nobody wants
// the download any more, with the original for the next time. One that holds the same goes.
func TestReplacedProgramStays(t *testing.T) {
	const at = "/opt/bin/tool"
	text := func(h *machine) string {
		b, _ := h.ReadFile(at)
		return string(b)
	}
	for name, c := range map[string]struct {
		original, read bool
		then           func(h *machine)
		left           string
	}{
		"theirs":                             {then: func(h *machine) { h.Put(at, "theirs", 0o755) }, left: "theirs"},
		"theirs, ours was read":              {read: true, then: func(h *machine) { h.Put(at, "theirs", 0o755) }, left: "theirs"},
		"theirs in place of the image's":     {original: true, then: func(h *machine) { h.Put(at, "theirs", 0o755) }, left: "theirs"},
		"written again":                      {read: true, then: func(h *machine) { h.Put(at, text(h), 0o755) }},
		"written again, of the image before": {original: true, read: true, then: func(h *machine) { h.Put(at, text(h), 0o755) }, left: "image's"},
		"as it was":                          {then: func(*machine) {}},
		"as it was, of the image before":     {original: true, then: func(*machine) {}, left: "image's"},
		"with another name, which it has":    {then: func(h *machine) { must(h.Link(at, "/opt/bin/other")) }},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			if c.original {
				h.Put(at, "image's", 0o755)
			}
			tool := kubelet("2.0.0")
			tool.Files[0].Path = at
			st := sealed(t, tool)
			if _, err := fetching(h).Apply(t.Context(), st); err != nil {
				t.Fatal(err)
			}
			if c.read {
				must(fetching(h).Remember(t.Context(), st))
			}
			h.Advance(time.Minute)
			c.then(h)
			res, err := fetching(h).Apply(t.Context(), sealed(t))
			if err != nil {
				t.Fatal(err)
			}
			if theirs := c.left == "theirs"; text(h) != c.left || (len(res.Plan.Kept) == 1) != theirs {
				t.Errorf("%q is left, kept %q", text(h), res.Plan.Kept)
			}
		})
	}
}
