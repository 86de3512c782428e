package swap

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/paths"
)

func TestHeader(t *testing.T) {
	for _, page := range []int{4096, 16384, 65536} {
		const size = 3 << 20
		b := header("/swapfile", size, page)
		a, ok := readHeader(b, page)
		if !ok || !a.ours || a.pages != int64(size/page) {
			t.Errorf("%d: %+v, %v", page, a, ok)
		}
		for what, other := range map[string][]byte{"short": b[:page-1], "empty": nil, "zeros": make([]byte, page)} {
			if _, ok := readHeader(other, page); ok {
				t.Errorf("%d: %s counts as an area", page, what)
			}
		}
		copy(b[labelAt:], "theirs\x00")
		if a, ok := readHeader(b, page); !ok || a.ours {
			t.Errorf("%d: of others: %+v, %v", page, a, ok)
		}
	}
}

// blkid(8) reads what berth writes.
func TestHeaderIsReadByOthers(t *testing.T) {
	p := filepath.Join(t.TempDir(), "swap")
	page := os.Getpagesize()
	if err := os.WriteFile(p, append(header("/swapfile", 1<<20, page), make([]byte, 1<<20-page)...), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "/sbin/blkid", "--probe", "--output", "export", p).CombinedOutput()
	if text := string(out); err != nil || !strings.Contains(text, "TYPE=swap\n") || !strings.Contains(text, "LABEL=berth\n") {
		t.Errorf("%v: %s", err, out)
	}
}

// What makes a file at boot waits for a run that may be making it, and makes none where
// that has; where the file is there nobody waits.
func TestRestoreWaitsForARun(t *testing.T) {
	h := memory.New()
	h.PutDir("/mnt")
	s := &desired.Swap{Path: "/mnt/swapfile", Bytes: 1 << 20}
	if _, err := host.MkdirAll(h, paths.RunDir); err != nil {
		t.Fatal(err)
	}
	unlock, err := h.Lock(t.Context(), ledger.LockPath, "berth apply")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Restore(ctx, h, s); err == nil || !strings.Contains(err.Error(), "berth apply") {
		t.Errorf("error %v", err)
	}
	h.Put(s.Path, string(append(header(s.Path, s.Bytes, os.Getpagesize()), make([]byte, 1<<20-os.Getpagesize())...)), 0o600)
	if err := Restore(ctx, h, s); err != nil {
		t.Errorf("there already: %v", err)
	}
	if err := errors.Join(unlock(), Restore(t.Context(), h, s)); err != nil {
		t.Error(err)
	}
}

func FuzzReadHeader(f *testing.F) {
	f.Add(header("/swapfile", 1<<20, 4096))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, ok := readHeader(b, 4096); ok && (len(b) != 4096 || a.pages < 1) {
			t.Errorf("%+v of %d bytes", a, len(b))
		}
	})
}

// At boot the file is made where it has gone, once, and what others left is theirs.
func TestRestore(t *testing.T) {
	h, runs := memory.New(), 0
	h.Program("/usr/bin/fallocate", func(c host.Command) host.Output {
		runs++
		f, err := h.Append(c.Args[len(c.Args)-1])
		if err != nil {
			return host.Output{ExitCode: 1}
		}
		_, err = f.Write(make([]byte, 1<<20-os.Getpagesize()))
		if errors.Join(err, f.Close()) != nil {
			return host.Output{ExitCode: 1}
		}
		return host.Output{}
	})
	h.PutDir("/mnt")
	s := &desired.Swap{Path: "/mnt/swapfile", Bytes: 1 << 20}
	for range 2 {
		if err := Restore(context.Background(), h, s); err != nil {
			t.Fatal(err)
		}
	}
	info, err := h.Lstat(s.Path)
	if err != nil || info.Size != 1<<20 || info.Mode != 0o600 || runs != 1 {
		t.Errorf("%+v, %v, made %d times", info, err, runs)
	}
	h.Put(s.Path, "a letter", 0o644)
	if err := Restore(context.Background(), h, s); !errors.Is(err, ErrTaken) {
		t.Errorf("error %v", err)
	}
}
