package report

import (
	"errors"
	"testing"

	"github.com/berth-dev/berth/internal/host/memory"
)

// The kernel shows its copy only where the console takes none: both at once
// come out mixed.
func TestConsole(t *testing.T) {
	for _, broken := range []bool{false, true} {
		h := memory.New()
		said := map[string]string{}
		for _, p := range []string{"/dev/console", "/dev/kmsg"} {
			h.ValueFunc(p, "", func(_, written string) (string, error) {
				if broken && p == "/dev/console" {
					return "", errors.New("no console")
				}
				said[p] = written
				return "", nil
			})
		}
		Console(h, "x")
		want := map[bool]string{false: "<15>berth: x\n", true: "<11>berth: x\n"}[broken]
		if said["/dev/kmsg"] != want || !broken && said["/dev/console"] != "berth: x\n" {
			t.Errorf("broken %v: %q", broken, said)
		}
	}
}
