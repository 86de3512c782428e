package converge_test

import (
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

const labelled = "/etc/containerd/config.toml"

// withXattrs is a machine whose file of the image carries what a distribution and
// an administrator attach to one.
func withXattrs(*testing.T) *machine {
	h := newMachine()
	must(h.SetXattr(labelled, "security.selinux", []byte("system_u:object_r:container_config_t:s0\x00")))
	must(h.SetXattr(labelled, "user.comment", []byte{0, 0xff}))
	must(h.SetXattr(labelled, "trusted.overlay.origin", []byte("x")))
	h.Flush()
	return h
}

func xattrs(h *machine) map[string][]byte {
	all, err := h.Xattrs(labelled)
	must(err)
	return all
}

// What berth replaced comes back with its extended attributes, except those that
// are the file system's own.
func TestOriginalsKeepXattrs(t *testing.T) {
	h := withXattrs(t)
	want := xattrs(h)
	delete(want, "trusted.overlay.origin")
	e := engine(h, &providers{})
	if _, err := e.Apply(t.Context(), sampleState(t)); err != nil {
		t.Fatal(err)
	}
	if got := xattrs(h); len(got) != 1 || got[host.ProvenanceName] == nil {
		t.Fatalf("the new file carries %v", got)
	}
	res, err := e.Apply(t.Context(), &desired.State{Owner: desired.OwnerAKS})
	if err != nil {
		t.Fatal(err, res.Plan)
	}
	h.PowerCut(memory.LoseAll)
	h.Boot()
	if diff := cmp.Diff(want, xattrs(h)); diff != "" {
		t.Error(diff)
	}
}

// An original that another put back without its attributes is not back: what
// stands there is a third thing, kept and reported.
func TestOriginalWithoutXattrsIsNotBack(t *testing.T) {
	h := withXattrs(t)
	e := engine(h, &providers{})
	if _, err := e.Apply(t.Context(), sampleState(t)); err != nil {
		t.Fatal(err)
	}
	back := func(x map[string][]byte) bool {
		h.Put(labelled, "version = 2\n", 0o644)
		for name, value := range x {
			must(h.SetXattr(labelled, name, value))
		}
		plan, err := e.Plan(t.Context(), &desired.State{Owner: desired.OwnerAKS})
		if err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(plan.Kept, func(r string) bool { return strings.HasPrefix(r, labelled+" ") })
	}
	all := xattrs(withXattrs(t))
	all["user.more"] = []byte("1")
	if !back(all) {
		t.Error("a file with its attributes and one more is not taken for the original")
	}
	for _, x := range []map[string][]byte{nil, {"user.comment": []byte("other"), "security.selinux": all["security.selinux"]}} {
		if back(x) {
			t.Errorf("a file with %q is taken for the original", x)
		}
	}
}

// Cut off anywhere, a removal brings the attributes back all the same.
func TestXattrsComeBackAfterACut(t *testing.T) {
	s := scenario{"removal", func(t *testing.T) *machine {
		h := withXattrs(t)
		if _, err := engine(h, &providers{}).Apply(t.Context(), sampleState(t)); err != nil {
			t.Fatal(err)
		}
		h.Flush()
		return h
	}, func(*testing.T) *desired.State { return &desired.State{Owner: desired.OwnerAKS} }, nil, false}
	want := xattrs(withXattrs(t))
	delete(want, "trusted.overlay.origin")
	_, effects := undisturbed(t, s, 7)
	for n := 1; n <= effects; n += stride {
		for seed := range uint64(4) {
			h := s.machine(t)
			disturb(t, h, s, effect.Plan{{At: n, Kind: effect.StopAfter}})
			h.PowerCut(seed)
			h.Boot()
			again(t, h, s)
			if diff := cmp.Diff(want, xattrs(h)); diff != "" {
				t.Fatalf("cut at effect %d, seed %d: %s", n, seed, diff)
			}
		}
	}
}

// slowSync lets other workers run wherever a temporary file is synced.
type slowSync struct{ host.Host }

func (s slowSync) Create(p string) (host.File, error) {
	f, err := s.Host.Create(p)
	return yielding{f}, err
}

type yielding struct{ host.File }

func (y yielding) Sync() error {
	for range 20 {
		goruntime.Gosched()
	}
	return y.File.Sync()
}

// Files of equal content, as empty ones are, share what is stored of them.
func TestOriginalsOfEqualContent(t *testing.T) {
	for range 20 {
		h := newMachine()
		var files []desired.Resource
		for i := range 8 {
			p := fmt.Sprintf("/etc/f%d", i)
			h.Put(p, "", 0o644)
			files = append(files, managed(p, "new\n"))
		}
		many := func(o *converge.Options) { o.Workers = 16 }
		if _, err := engine(slowSync{h}, &providers{}, many).Apply(t.Context(), sealed(t, files...)); err != nil {
			t.Fatal(err)
		}
		if _, err := engine(slowSync{h}, &providers{}, many).Apply(t.Context(), sealed(t)); err != nil {
			t.Fatal(err)
		}
		for i := range 8 {
			has(t, h, fmt.Sprintf("/etc/f%d", i), "")
		}
	}
}

// A run that takes a file back, and is killed anywhere, leaves the next one to keep what it has
// restored, where that one's document wants the file again.
func TestOriginalOfAFileThatIsWantedAgain(t *testing.T) {
	with, without := sealed(t, managed("/etc/x", "ours\n"), managed("/etc/y", "1\n")), sealed(t, managed("/etc/y", "1\n"))
	for n, hit := 1, true; hit; n++ {
		h := newMachine()
		h.Put("/etc/x", "theirs\n", 0o644)
		runs(t, h, with)
		in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
		_, _ = engine(in, &providers{}).Apply(t.Context(), without)
		hit = in.Hit() != nil
		h.Kill()
		runs(t, h, with)
		has(t, h, "/etc/x", "ours\n")
		if p := runs(t, h, sealed(t)); len(p.Kept) > 0 {
			t.Errorf("killed after effect %d: kept %q", n, p.Kept)
		}
		has(t, h, "/etc/x", "theirs\n")
	}
}

// The same where a link of berth's gives way on a file system without second names: for a moment
// nothing stands there.
func TestOriginalBehindALinkWithoutSecondNames(t *testing.T) {
	with := sealed(t, &desired.Link{Path: "/etc/x", Target: "/etc/z"}, managed("/etc/y", "1\n"))
	without := sealed(t, managed("/etc/y", "2\n"))
	for n, hit := 1, true; hit; n++ {
		h := newMachine()
		h.Put("/etc/x", "theirs\n", 0o644)
		untouched := others(h)
		runs(t, h, with)
		in := effect.Inject(noLinks{h, syscall.EPERM}, effect.Plan{{At: n, Kind: effect.StopAfter}})
		_, _ = engine(in, &providers{}).Apply(t.Context(), without)
		hit = in.Hit() != nil
		h.Kill()
		runs(t, h, without)
		if p := runs(t, h, sealed(t)); len(p.Kept) > 0 {
			t.Errorf("killed after effect %d: kept %q", n, p.Kept)
		}
		if d := cmp.Diff(untouched, others(h)); d != "" {
			t.Errorf("killed after effect %d: %s", n, d)
		}
	}
}
