package converge_test

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// noLinks is a machine whose file systems know no second name of a file, as vfat.
type noLinks struct {
	host.Host
	err error
}

func (n noLinks) Link(_, to string) error { return &fs.PathError{Op: "link", Path: to, Err: n.err} }

const loaderEntry, loaderConf = "/boot/efi/loader/entries/os.conf", "/boot/efi/loader/loader.conf"

// bootable is a machine with somebody's files where there are no links.
func bootable() *machine {
	h := newMachine()
	h.Put(loaderEntry, "title theirs\n", 0o644)
	h.Put(loaderConf, "timeout 9\n", 0o644)
	h.Settle()
	return h
}

func bootState(t *testing.T, version string) *desired.State {
	t.Helper()
	if version == "" {
		return &desired.State{Owner: desired.OwnerAKS}
	}
	return sealed(t, managed(loaderEntry, "title "+version+"\n"), managed(loaderConf, "timeout "+version+"\n"), managed("/boot/efi/new", version))
}

// Several files change at once where no file can have two names, and go back to what
// they were.
func TestFileSystemWithoutLinks(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EPERM, syscall.EOPNOTSUPP, syscall.ENOSYS} {
		h := bootable()
		before := h.Tree("/boot")
		for _, version := range []string{"1", "2", ""} {
			st := bootState(t, version)
			if _, err := seeded(noLinks{h, errno}, 7).Apply(tctx, st); err != nil {
				t.Fatalf("%v, version %q: %v", errno, version, err)
			}
			converged(t, h, st)
		}
		if diff := cmp.Diff(before, h.Tree("/boot")); diff != "" {
			t.Errorf("%v: %s", errno, diff)
		}
	}
}

// A fault at any effect there loses nobody's file.
func TestFileSystemWithoutLinksCutOffAnywhere(t *testing.T) {
	for _, f := range []struct {
		name string
		kind effect.Kind
		err  error
		cut  bool
	}{
		{name: "killed after", kind: effect.StopAfter}, {name: "cut after", kind: effect.StopAfter, cut: true},
		{name: "refused", kind: effect.Fail, err: syscall.EIO},
	} {
		t.Run(f.name, func(t *testing.T) {
			for n, hit := 1, true; hit; n += stride {
				h := bootable()
				before := h.Tree("/boot")
				in := effect.Inject(noLinks{h, syscall.EPERM}, effect.Plan{{At: n, Kind: f.kind, Err: f.err}})
				if _, err := seeded(in, 7).Apply(tctx, bootState(t, "1")); err == nil && in.Hit() != nil {
					t.Fatalf("effect %d hides its fault", n)
				}
				hit = in.Hit() != nil
				switch {
				case f.cut:
					h.PowerCut(memory.NamesOnly)
					h.Boot()
				case f.err == nil:
					h.Kill()
				}
				for _, version := range []string{"1", ""} {
					if _, err := seeded(noLinks{h, syscall.EPERM}, 7).Apply(tctx, bootState(t, version)); err != nil {
						t.Fatalf("effect %d: %v", n, err)
					}
					converged(t, h, bootState(t, version))
				}
				if diff := cmp.Diff(before, h.Tree("/boot")); diff != "" {
					t.Fatalf("effect %d (%v): %s", n, in.Hit(), diff)
				}
			}
		})
	}
}
