package reconcile

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/internal/host"
)

// writing is a machine on which somebody goes on to write a file while it is repaired.
type writing struct {
	host.Host
	left *int
	b    *bench
}

// Create implements host.Files.
func (w writing) Create(p string) (host.File, error) {
	if strings.HasPrefix(p, "/etc/") && *w.left > 0 {
		*w.left--
		w.b.h.Overwrite("/etc/a", fmt.Sprintf("edited %d", *w.left))
	}
	return w.Host.Create(p)
}

// TestAFileThatIsStillWritten: who saves a file writes it more than once. The repair that
// comes in between is nothing to tell; that nothing can be repaired is.
func TestAFileThatIsStillWritten(t *testing.T) {
	for _, c := range []struct{ writes, failures int }{{1, 0}, {2, 0}, {20, 1}} {
		t.Run(fmt.Sprint(c.writes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				left := 0
				b.engineHost = writing{b.h, &left, b}
				b.start()
				defer b.stop()
				b.give("file /etc/a one")
				left = c.writes
				b.h.Overwrite("/etc/a", "edited")
				b.pass(10 * time.Minute)
				b.wantFile("/etc/a", "one")
				if b.count("RepairFailed") != c.failures || b.count("DriftRepaired") == 0 || b.lastCondition() != "True Applied" {
					t.Errorf("%q, %q", b.told(), b.conditions)
				}
				if c.failures == 0 && b.count("DriftRepaired") != 1 {
					t.Errorf("%q", b.told())
				}
			})
		})
	}
}
