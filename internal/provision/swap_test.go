package provision

import (
	"errors"
	"os"
	"testing"

	"github.com/berth-dev/berth/internal/component/swap"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// A boot makes the file that the last run wrote down, and says what is wrong where it
// can't.
func TestRestoreSwap(t *testing.T) {
	h := memory.New()
	coded := func(what string, err error) {
		t.Helper()
		if e, ok := errors.AsType[*exitcode.Error](err); !ok || e.Number != exitcode.SwapFile || e.Remedy == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	coded("nothing written", RestoreSwap(t.Context(), h))
	h.Put(swap.SettingsFile, `{"path":"/swapfile","bytes":1048576}`, 0o644)
	coded("no fallocate", RestoreSwap(t.Context(), h))
	h.Program("/usr/bin/fallocate", func(c host.Command) host.Output {
		f, err := h.Append(c.Args[len(c.Args)-1])
		if err == nil {
			_, err = f.Write(make([]byte, 1<<20-os.Getpagesize()))
		}
		if err != nil || f.Close() != nil {
			return host.Output{ExitCode: 1}
		}
		return host.Output{}
	})
	if err := RestoreSwap(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if info, err := h.Lstat("/swapfile"); err != nil || info.Size != 1<<20 || info.Mode.Perm() != 0o600 {
		t.Errorf("%+v, %v", info, err)
	}
}
