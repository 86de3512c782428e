package converge_test

import (
	"context"
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
	h.Flush()
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
				for _, name := range []string{loaderEntry, loaderConf} {
					if text, err := h.ReadFile(name); err != nil || len(text) == 0 {
						t.Fatalf("effect %d (%v): %s is %q, %v", n, in.Hit(), name, text, err)
					}
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

// fat is a machine whose /boot/efi has modes and owner of its mount: chmod(2) is done and
// does nothing.
type fat struct {
	noLinks
	umask fs.FileMode
}

func onFAT(h host.Host, umask fs.FileMode) fat { return fat{noLinks{h, syscall.EPERM}, umask} }

func (f fat) Mounts(ctx context.Context) ([]host.Mount, error) {
	all, err := f.Host.Mounts(ctx)
	return append(all, host.Mount{Source: "/dev/vda15", Target: "/boot/efi", Type: "vfat"}), err
}

func (f fat) Lstat(p string) (host.Info, error) {
	info, err := f.Host.Lstat(p)
	if strings.HasPrefix(p, "/boot/efi/") {
		info.Mode = info.Mode.Type() | 0o777&^f.umask
	}
	return info, err
}

// Where modes can't be changed, a narrower or an executable file is as good, and one that
// others may read who should not is refused.
func TestFileSystemWithoutModes(t *testing.T) {
	for _, umask := range []fs.FileMode{0o022, 0o077} {
		h := onFAT(bootable(), umask)
		runs(t, h, bootState(t, "1"))
		converged(t, h, bootState(t, "1"))
		runs(t, h, bootState(t, ""))
		converged(t, h, bootState(t, ""))
	}
	secret := managed(loaderEntry, "title theirs\n")
	secret.Mode = 0o600
	for umask, refused := range map[fs.FileMode]bool{0o022: true, 0o077: false} {
		p, err := engine(onFAT(bootable(), umask), &providers{}).Plan(tctx, sealed(t, secret))
		if refused != (err != nil && strings.Contains(err.Error(), "keeps no modes")) || !refused && !p.Empty() {
			t.Errorf("umask %o: %v, %v", umask, verbs(p), err)
		}
	}
}
