package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The moments of the power cuts: one in each fifth of provisioning.
const (
	cuts    = 5
	cutSeed = 4
)

// powerCuts takes the power while the machine is being provisioned. Each time
// the disk must hold no half-written file, and the machine must become a node
// by itself at its next boot.
func (m *machine) powerCuts(t *testing.T, took time.Duration, files map[string]string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(cutSeed, 0))
	m.restore(t)
	before := m.sums(t, files)
	// The latest first: it finds out how long provisioning takes by now.
	for i := cuts - 1; i >= 0; i-- {
		took = m.cutAt(t, (float64(i)+rng.Float64())/cuts, took, before, files)
		m.recovers(t, files)
		if t.Failed() {
			t.Fatalf("after the power cut in fifth %d", i+1)
		}
	}
}

// restore brings the machine back to the moment before its first run, and the
// cluster to where it does not know it.
func (m *machine) restore(t *testing.T) {
	t.Helper()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	err := m.lab.Client().CoreV1().Nodes().Delete(within(t, time.Minute), m.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if err := m.BootState(within(t, vmDeadline), beforeProvisioning); err != nil {
		t.Fatal(err)
	}
}

// cutAt provisions and takes the power after a part of the time that it takes.
// Where provisioning had ended by then, it takes less time than was thought:
// once more, with a shorter time, which is returned.
func (m *machine) cutAt(t *testing.T, part float64, took time.Duration, before, after map[string]string) time.Duration {
	t.Helper()
	for ; ; took = took * 4 / 5 {
		m.restore(t)
		moment := time.Duration(part * float64(took))
		m.release(t)
		<-time.After(moment)
		if err := m.PowerCut(); err != nil {
			t.Fatal(err)
		}
		m.step(fmt.Sprintf("restored, power cut %.1f s after the start of provisioning", moment.Seconds()))
		written, ended := m.examine(t, before, after)
		m.step(fmt.Sprintf("disk checked: %d of %d files were written, ended: %t", written, len(after), ended))
		if !ended {
			return took
		}
	}
}

// recovers boots the machine after a power cut and proves that it becomes the
// node that an undisturbed run makes.
func (m *machine) recovers(t *testing.T, files map[string]string) {
	t.Helper()
	if err := m.Boot(within(t, vmDeadline)); err != nil {
		t.Fatal(err)
	}
	m.awaitAgent(t)
	m.step("booted, agent answers")
	checkStatus(t, m.cse(t))
	m.step("provision-wait returned")
	m.awaitReady(t)
	m.step("Ready")
	m.ask(t, recoveredFacts)
	if got := m.sums(t, files); !maps.Equal(got, files) {
		t.Errorf("other files than of an undisturbed run:\n got %v\nwant %v", got, files)
	}
	m.step("facts checked")
}

// sums are the sha256 sums of some files, as the machine reads them. A file
// that is not there has none.
func (m *machine) sums(t *testing.T, files map[string]string) map[string]string {
	t.Helper()
	names := slices.Sorted(maps.Keys(files))
	out := m.sh(t, "sha256sum '"+strings.Join(names, "' '")+"' 2>/dev/null || true")
	sums := map[string]string{}
	for line := range strings.Lines(out) {
		if sum, path, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
			sums[path] = sum
		}
	}
	return sums
}
