package converge_test

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// turn is a contract whose second version has a directory where the first has a
// file or a link, or the other way round.
type turn struct {
	before, after []desired.Resource
}

func turns() map[string]turn {
	dir := func(p string) *desired.Directory { return &desired.Directory{Path: p, Mode: 0o750, UID: 7, GID: 8} }
	link, away := &desired.Link{Path: "/etc/x", Target: "y"}, &desired.Link{Path: "/etc/x", Target: "/usr"}
	file, below, deep := managed("/etc/x", "file\n"), managed("/etc/x/y", "below\n"), managed("/etc/x/y/z", "deep\n")
	return map[string]turn{
		"file to parent":    {[]desired.Resource{file}, []desired.Resource{below}},
		"parent to file":    {[]desired.Resource{below}, []desired.Resource{file}},
		"file to directory": {[]desired.Resource{file}, []desired.Resource{dir("/etc/x")}},
		"directory to file": {[]desired.Resource{dir("/etc/x")}, []desired.Resource{file}},
		"directory to link": {[]desired.Resource{dir("/etc/x"), below}, []desired.Resource{link}},
		"link to directory": {[]desired.Resource{link}, []desired.Resource{dir("/etc/x"), below}},
		"link to parent of what is there, too": {[]desired.Resource{away}, []desired.Resource{managed("/etc/x/bin/containerd", "ours\n"), dir("/etc/x/lib"),
			&desired.Block{Path: "/etc/x/lib/systemd/system/containerd.service", Name: "a", Lines: "a\n", Mode: 0o644}}},
		"parent to link":            {[]desired.Resource{managed("/etc/x/bin/containerd", "ours\n"), dir("/etc/x/lib")}, []desired.Resource{away}},
		"file to tree":              {[]desired.Resource{file}, []desired.Resource{deep}},
		"tree to file":              {[]desired.Resource{deep, managed("/etc/x/a", "a\n")}, []desired.Resource{file}},
		"entry becomes a directory": {[]desired.Resource{below, managed("/etc/x/a", "a\n")}, []desired.Resource{deep, managed("/etc/x/a", "b\n")}},
	}
}

// Cut off at any effect, by a kill, an error or a power cut, the turn is made by the
// next run, and the withdrawal leaves nothing.
func TestDirectoryTurns(t *testing.T) {
	for name, c := range turns() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := sealed(t, c.before...), sealed(t, c.after...)
			image := others(newMachine())
			want := turned(t, before)
			runs(t, want, after)
			converged(t, want, after)
			effects := effect.Inject(turned(t, before), nil)
			runs(t, effects, after)
			for n := 1; n <= effects.Count(); n++ {
				for _, end := range ends(n) {
					h := turned(t, before)
					end.cutOff(t, h, n, after)
					runs(t, h, after)
					converged(t, h, after)
					if diff := cmp.Diff(h.Tree("/etc"), want.Tree("/etc")); diff != "" {
						t.Fatalf("%s effect %d: %s", end.name, n, diff)
					}
					runs(t, h, sealed(t))
					if diff := cmp.Diff(image, others(h)); diff != "" {
						t.Fatalf("%s effect %d, withdrawn: %s", end.name, n, diff)
					}
				}
			}
		})
	}
}

// Killed anywhere, neither the turn nor its withdrawal takes anything from what was there
// before: any document may come next, of another owner, too.
func TestDirectoryTurnsNoFurther(t *testing.T) {
	none, another := sealed(t), of(desired.OwnerOSC, sealed(t, managed("/etc/y", "1\n")))
	for name, c := range turns() {
		before, after := sealed(t, c.before...), sealed(t, c.after...)
		for next, third := range map[string]*desired.State{"the first": before, "none": none, "another's": another} {
			t.Run(name+", then "+next, func(t *testing.T) {
				t.Parallel()
				for _, steps := range [][]*desired.State{{before, after}, {before, after, none}} {
					for n, hit := 1, true; hit; n += stride {
						h := newMachine()
						if c.before[0].Kind() != "directory" && c.before[0].FilePaths()[0] == "/etc/x" {
							h.PutLink("/srv", "/etc/x", 0)
						}
						image := others(h)
						at := killedInTheLast(t, h, n, steps)
						hit = at != nil
						for _, s := range []*desired.State{third, of(third.Owner, sealed(t)), none} {
							runs(t, h, s)
							converged(t, h, s)
						}
						if diff := cmp.Diff(image, others(h)); diff != "" {
							t.Fatalf("%d steps, effect %d (%v): %s", len(steps), n, at, diff)
						}
					}
				}
			})
		}
	}
}

// killedInTheLast brings a machine to states, and is killed at an effect of the last.
func killedInTheLast(t *testing.T, h *machine, n int, steps []*desired.State) *effect.Effect {
	t.Helper()
	last := len(steps) - 1
	for _, s := range steps[:last] {
		runs(t, h, s)
	}
	in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
	_, _ = engine(in, &providers{}).Apply(t.Context(), steps[last])
	h.Kill()
	return in.Hit()
}

func turned(t *testing.T, s *desired.State) *machine {
	h := newMachine()
	runs(t, h, s)
	h.Flush()
	return h
}

// end is a way in which a run does not come to its end.
type end struct {
	name string
	kind effect.Kind
	err  error
	cut  bool
	seed uint64
}

func ends(n int) []end {
	all := []end{
		{name: "killed after", kind: effect.StopAfter},
		{name: "refused", kind: effect.Fail, err: syscall.EACCES},
		{name: "cut, all lost, after", kind: effect.StopAfter, cut: true, seed: memory.LoseAll},
		{name: "cut, names only, after", kind: effect.StopAfter, cut: true, seed: memory.NamesOnly},
		{name: "cut after", kind: effect.StopAfter, cut: true, seed: uint64(n) + 100},
	}
	if stride > 1 {
		return all[n%len(all) : n%len(all)+1]
	}
	return all
}

func (e end) cutOff(t *testing.T, h *machine, n int, s *desired.State) {
	t.Helper()
	in := effect.Inject(h, effect.Plan{{At: n, Kind: e.kind, Err: e.err}})
	if _, err := engine(in, &providers{}).Apply(t.Context(), s); err == nil || in.Hit() == nil {
		t.Fatalf("%s effect %d: %v, %v", e.name, n, in.Hit(), err)
	}
	switch {
	case e.cut:
		h.PowerCut(e.seed)
		h.Boot()
	case e.kind != effect.Fail:
		h.Kill()
	}
}

// stubborn is a machine on which one name can't be replaced or taken away, and
// nobody sees why before it is tried.
type stubborn struct {
	host.Host
	name string
}

func (s stubborn) Rename(from, to string) error {
	if to == s.name || from == s.name {
		return &host.LockedError{Path: s.name, Holder: "the kernel"}
	}
	return s.Host.Rename(from, to)
}

// A name that can't be had takes all others back: the machine is as it was, and
// the next run, on a machine that lets it, as wanted.
func TestHalfWayIsNoWay(t *testing.T) {
	first := []desired.Resource{managed("/etc/d/goes", "1\n"), managed("/etc/e", "1\n"), managed("/etc/f", "1\n"), &desired.Link{Path: "/etc/l", Target: "1"}}
	second := []desired.Resource{managed("/etc/a", "new\n"), managed("/etc/e", "2\n"), managed("/etc/f", "2\n"),
		&desired.Link{Path: "/etc/l", Target: "2"}, &desired.Directory{Path: "/etc/n", Mode: 0o700}, managed("/etc/z/deep", "new\n"), managed("/etc/motd", "ours\n")}
	for _, name := range []string{"/etc/a", "/etc/d/goes", "/etc/e", "/etc/f", "/etc/l", "/etc/z/deep", "/etc/motd"} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			h.Put("/etc/motd", "image's\n", 0o644)
			image := others(h)
			runs(t, h, sealed(t, first...))
			before := h.Tree("/etc")
			_, err := engine(stubborn{h, name}, &providers{}).Apply(t.Context(), sealed(t, second...))
			if err == nil || !strings.Contains(err.Error(), name+" is held by the kernel") {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(before, h.Tree("/etc")); diff != "" {
				t.Errorf("half-way: %s", diff)
			}
			if left := temporary(h); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			converged(t, h, sealed(t, first...))
			runs(t, h, sealed(t, second...))
			converged(t, h, sealed(t, second...))
			runs(t, h, sealed(t))
			if diff := cmp.Diff(image, others(h)); diff != "" {
				t.Errorf("withdrawn: %s", diff)
			}
		})
	}
}

// covered is a machine on which a file is bound over another.
type covered struct {
	host.Host
	name string
}

func (c covered) Lstat(p string) (host.Info, error) {
	info, err := c.Host.Lstat(p)
	info.MountPoint = info.MountPoint || p == c.name
	return info, err
}

// What nobody can replace stands in the plan with the reason, and apply changes
// nothing.
func TestBlockedInThePlan(t *testing.T) {
	s := sealed(t, managed("/etc/a", "new\n"), managed("/etc/b", "new\n"))
	for name, c := range map[string]struct {
		arrange func(h *machine) host.Host
		why     string
		clear   func(h *machine)
	}{
		"immutable": {func(h *machine) host.Host { h.SetImmutable("/etc/b", true); return h },
			"it is immutable (chattr +i or +a)", func(h *machine) { h.SetImmutable("/etc/b", false) }},
		"a pipe": {func(h *machine) host.Host { h.PutSpecial("/etc/b", fs.ModeNamedPipe|0o600); return h },
			"it is a special file, which can't be put back", func(h *machine) { must(h.Remove("/etc/b")) }},
		"a directory with entries": {func(h *machine) host.Host { must(h.Remove("/etc/b")); h.Put("/etc/b/c", "", 0o644); return h },
			"there is a directory already", func(h *machine) { must(errors.Join(h.Remove("/etc/b/c"), h.Remove("/etc/b"))) }},
		"mounted over": {func(h *machine) host.Host { return covered{h, "/etc/b"} },
			"something is mounted over it", func(*machine) {}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			for _, p := range []string{"/etc/a", "/etc/b"} {
				h.Put(p, "image's\n", 0o644)
			}
			on := c.arrange(h)
			before := others(h)
			p, err := engine(on, &providers{}).Plan(t.Context(), s)
			if err == nil || !strings.Contains(err.Error(), "/etc/b: "+c.why) {
				t.Fatalf("plan: %v", err)
			}
			blocked := map[desired.ID]string{}
			for _, a := range p.Actions {
				blocked[a.ID] = a.Blocked
			}
			if blocked["file:/etc/a"] != "" || !strings.Contains(blocked["file:/etc/b"], c.why) {
				t.Errorf("blocked %q", blocked)
			}
			if _, err := engine(on, &providers{}).Apply(t.Context(), s); err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("apply: %v", err)
			}
			if diff := cmp.Diff(before, others(h)); diff != "" {
				t.Errorf("blocked, but %s", diff)
			}
			c.clear(h)
			runs(t, h, s)
			converged(t, h, s)
		})
	}
}

// Names that can't come about stand in the plan, too: one in a directory that nobody may
// change, also where others are to be made below it, and one that is too long for the
// temporary file.
func TestNamesBlockedInThePlan(t *testing.T) {
	long := "/srv/" + strings.Repeat("n", 245)
	for name, c := range map[string]struct {
		path, why string
		fits      bool
	}{
		"an immutable directory": {path: "/opt/fixed/new", why: "its directory is immutable (chattr +i or +a)"},
		"below it":               {path: "/opt/fixed/a/b/new", why: "its directory is immutable (chattr +i or +a)"},
		"below a file":           {path: "/opt/file/a/new", why: "make directory /opt/file: there is a file already"},
		"a long name":            {path: long, why: "its name has more than 244 bytes"},
		"not quite as long":      {path: strings.TrimSuffix(long, "n"), fits: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			h.PutDir("/opt/fixed")
			h.PutDir("/srv")
			h.Put("/opt/file", "", 0o644)
			h.SetImmutable("/opt/fixed", true)
			before := others(h)
			p, err := engine(h, &providers{}).Plan(t.Context(), sealed(t, managed(c.path, "new\n")))
			if c.fits {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.why) || len(p.Actions) != 1 || !strings.Contains(p.Actions[0].Blocked, c.why) {
				t.Errorf("%+v, %v", p, err)
			}
			if diff := cmp.Diff(before, others(h)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A directory's owner is durable when the run has reported success.
func TestOwnerOfADirectoryIsDurable(t *testing.T) {
	h := newMachine()
	s := sealed(t, &desired.Directory{Path: "/var/lib/etcd", Mode: 0o700, UID: 1000, GID: 1000})
	runs(t, h, s)
	h.PowerCut(memory.LoseAll)
	h.Boot()
	converged(t, h, s)
}

// One file under two names of its directory is refused, whichever comes first; and
// one is found under the other.
func TestTwoSpellings(t *testing.T) {
	h := newMachine()
	both := sealed(t, managed("/lib/x", "1\n"), managed("/usr/lib/x", "2\n"))
	for _, err := range []error{second(engine(h, &providers{}).Plan(t.Context(), both)), second(engine(h, &providers{}).Apply(t.Context(), both))} {
		if err == nil || !strings.Contains(err.Error(), "file:/lib/x stands in its way at /usr/lib/x") {
			t.Errorf("error %v", err)
		}
	}
	for _, other := range []desired.Resource{&desired.Directory{Path: "/usr/lib/x", Mode: 0o700}, managed("/usr/lib/x/y", "1\n")} {
		for _, spelled := range []desired.Resource{managed("/lib/x", "1\n"), &desired.Link{Path: "/lib/x", Target: "y"}} {
			if _, err := engine(h, &providers{}).Plan(t.Context(), sealed(t, spelled, other)); err == nil || !strings.Contains(err.Error(), "stands in its way at /usr/lib/x") {
				t.Errorf("%s and %s: %v", spelled.ID(), other.ID(), err)
			}
		}
	}
	twice := sealed(t, &desired.Directory{Path: "/lib/x", Mode: 0o700}, &desired.Directory{Path: "/usr/lib/x", Mode: 0o755})
	if _, err := engine(h, &providers{}).Plan(t.Context(), twice); err == nil || !strings.Contains(err.Error(), "directory:/lib/x stands in its way at /usr/lib/x") {
		t.Errorf("two directories: %v", err)
	}
	runs(t, h, sealed(t, managed("/lib/x", "1\n")))
	converged(t, h, sealed(t, managed("/usr/lib/x", "1\n")))
	_, err := engine(h, &providers{}).Plan(t.Context(), of(desired.OwnerOSC, sealed(t, managed("/usr/lib/x", "2\n"))))
	refused(t, err, "/usr/lib/x", desired.OwnerOSC, desired.OwnerAKS)
	runs(t, h, sealed(t))
	if _, err := h.Lstat("/usr/lib/x"); err == nil {
		t.Error("it is left")
	}
}

// A file in a directory asks for no mode of it: the mode is its owner's to change, and is what it
// was when nobody asks for one any more.
func TestDirectoryOfOthersFiles(t *testing.T) {
	const dir = "/etc/d"
	file := managed(dir+"/f", "1\n")
	for name, before := range map[string]bool{"made by berth": false, "there before": true} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			if before {
				h.PutDir(dir)
			}
			mode := func(want fs.FileMode) {
				t.Helper()
				if info, err := h.Lstat(dir); err != nil || info.Mode.Perm() != want {
					t.Errorf("mode %o, want %o, %v", info.Mode.Perm(), want, err)
				}
			}
			runs(t, h, sealed(t, &desired.Directory{Path: dir, Mode: 0o700}))
			others := of(desired.OwnerOSC, sealed(t, file))
			runs(t, h, others)
			runs(t, h, sealed(t, &desired.Directory{Path: dir, Mode: 0o711}))
			mode(0o711)
			both := of(desired.OwnerOSC, sealed(t, file, &desired.Directory{Path: dir, Mode: 0o700}))
			if _, err := engine(h, &providers{}).Apply(t.Context(), both); err == nil {
				t.Error("another mode was not refused")
			}
			runs(t, h, sealed(t))
			if before {
				mode(0o755)
			}
			runs(t, h, of(desired.OwnerOSC, sealed(t)))
			if _, err := h.Lstat(dir); (err == nil) != before {
				t.Errorf("after all has gone: %v", err)
			}
		})
	}
}

// The same within one document.
func TestDirectoryThatIsNoLongerAskedFor(t *testing.T) {
	h := newMachine()
	h.PutDir("/etc/d")
	file := managed("/etc/d/f", "1\n")
	runs(t, h, sealed(t, &desired.Directory{Path: "/etc/d", Mode: 0o700}, file))
	runs(t, h, sealed(t, file))
	if info, err := h.Lstat("/etc/d"); err != nil || info.Mode.Perm() != 0o755 {
		t.Errorf("mode %o, %v", info.Mode.Perm(), err)
	}
	converged(t, h, sealed(t, file))
}
