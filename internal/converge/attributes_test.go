package converge_test

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
)

// failing is a machine on which one attribute of a name can't be changed.
type failing struct {
	host.Host
	name  string
	chown bool
}

func (f failing) Chown(p string, uid, gid int) error {
	if f.chown && p == f.name {
		return syscall.EIO
	}
	return f.Host.Chown(p, uid, gid)
}

func (f failing) Chmod(p string, mode fs.FileMode) error {
	if !f.chown && p == f.name {
		return syscall.EIO
	}
	return f.Host.Chmod(p, mode)
}

// Of mode and owner that change in place neither is left changed where one can't be, and what
// is in the directory is not touched.
func TestAttributesHalfWay(t *testing.T) {
	for _, chown := range []bool{true, false} {
		h := newMachine()
		h.PutOwned("/etc/d", "", host.Attributes{Mode: fs.ModeDir | 0o700, UID: 3, GID: 4})
		h.Put("/etc/d/theirs", "t", 0o600)
		file, err := h.Lstat("/etc/d/theirs")
		must(err)
		before := others(h)
		s := sealed(t, &desired.Directory{Path: "/etc/d", Mode: 0o755, UID: 1, GID: 2})
		if _, err := engine(failing{h, "/etc/d", chown}, &providers{}).Apply(t.Context(), s); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, others(h)); diff != "" {
			t.Errorf("chown %v: %s", chown, diff)
		}
		runs(t, h, s)
		converged(t, h, s)
		runs(t, h, sealed(t))
		if diff := cmp.Diff(before, others(h)); diff != "" {
			t.Errorf("chown %v, withdrawn: %s", chown, diff)
		}
		if now, err := h.Lstat("/etc/d/theirs"); err != nil || now.Inode != file.Inode {
			t.Errorf("what was in it is another file: %v", err)
		}
	}
}

// Killed between owner and mode, a change in place is taken back by whichever document comes
// next and wants it no more, and so is one of which the taking back was killed.
func TestAttributesHalfWayAreBerths(t *testing.T) {
	for _, r := range []desired.Resource{&desired.Directory{Path: "/etc/d", Mode: 0o755, UID: 1, GID: 2}, kubelet("1.0.0")} {
		aks, none, osc := sealed(t, r), sealed(t), of(desired.OwnerOSC, sealed(t))
		for name, steps := range map[string][]*desired.State{
			"then none": {aks, none}, "then another's": {aks, osc, none}, "taken back, then another's": {none, osc, none},
			"taken back": {none, none}, "taken back, then again": {none, aks, none},
		} {
			t.Run(r.Kind()+" "+name, func(t *testing.T) {
				for n, hit := 1, true; hit; n++ {
					h := newMachine()
					h.PutOwned("/etc/d", "", host.Attributes{Mode: fs.ModeDir | 0o700, UID: 3, GID: 4})
					h.PutOwned("/opt/bin/kubelet", "1.0.0", host.Attributes{Mode: 0o640, UID: 3, GID: 4}) // it can't run
					h.Flush()
					before := others(h)
					if steps[0] == none {
						_, err := fetching(h).Apply(t.Context(), aks)
						must(err)
					}
					in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
					_, _ = fetching(in).Apply(t.Context(), steps[0])
					hit = in.Hit() != nil
					h.Kill()
					for _, s := range steps[1:] {
						res, err := fetching(h).Apply(t.Context(), s)
						if err != nil || len(res.Plan.Kept) > 0 {
							t.Errorf("effect %d (%v): kept %q, %v", n, in.Hit(), res.Plan.Kept, err)
						}
					}
					if diff := cmp.Diff(before, others(h)); diff != "" {
						t.Fatalf("effect %d (%v): %s", n, in.Hit(), diff)
					}
				}
			})
		}
	}
}
