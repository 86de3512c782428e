package vm

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/lab/e2e/setup"
)

// cut is a moment of provisioning at which the power goes.
type cut struct {
	name string
	// said is what berth has just said on the console; empty means the start.
	said string
	// later is how much time passes after that.
	later time.Duration
}

// cuts are the moments, the latest first: what goes wrong there shows first. They
// hang on berth's progress, since how fast a machine is depends on the day.
var cuts = []cut{
	{"while kubelet starts", "start unit:containerd.service", 3 * time.Second},
	{"while the kernel and containerd change", "create file:", 1500 * time.Millisecond},
	{"while files get their names", "issue credential:", 200 * time.Millisecond},
	{"while files are prepared", "check check:apiserver", 50 * time.Millisecond},
	{"at the start", "", time.Second},
}

// powerCut takes the power while the machine is being provisioned. The disk must
// hold no half-written file then, and the machine must become a node by itself
// at its next boot.
func (m *machine) powerCut(t *testing.T, c cut) {
	m.restore(t)
	if m.before == nil {
		m.before = m.sums(t, m.files)
	}
	m.step(t, "restored")
	m.provisionUntil(t, c)
	if err := m.PowerCut(); err != nil {
		t.Fatal(err)
	}
	m.step(t, "power cut")
	written, ended := m.examine(t)
	if ended {
		t.Error("provisioning had ended")
	}
	t.Logf("%d of %d files were written", written, len(m.files))
	m.step(t, "disk checked")
	m.recovers(t)
}

// restore brings the machine back to the moment before its first run, and the
// cluster to where it does not know it.
func (m *machine) restore(t *testing.T) {
	t.Helper()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	err := m.lab.Client().CoreV1().Nodes().Delete(setup.Within(t, time.Minute), m.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if err := m.BootState(setup.Within(t, vmDeadline), beforeProvisioning); err != nil {
		t.Fatal(err)
	}
}

// provisionUntil lets berth go on up to the moment of a cut.
func (m *machine) provisionUntil(t *testing.T, c cut) {
	t.Helper()
	from := m.SerialSize()
	m.release(t)
	if c.said != "" {
		if _, err := m.WaitSerial(setup.Within(t, vmDeadline), from, regexp.MustCompile(regexp.QuoteMeta(c.said))); err != nil {
			t.Fatal(err)
		}
	}
	<-time.After(c.later)
}

// withoutLateStages leaves out what cloud-init does after it has started
// provisioning: a third of a boot, and the first boot and the reboot have it.
const withoutLateStages = "systemd.mask=cloud-config.service systemd.mask=cloud-final.service"

// recovers boots the machine after a power cut and proves that it becomes the
// node that an undisturbed run makes.
func (m *machine) recovers(t *testing.T) {
	t.Helper()
	if err := m.BootWith(setup.Within(t, vmDeadline), withoutLateStages); err != nil {
		t.Fatal(err)
	}
	m.awaitAgent(t)
	m.step(t, "booted, agent answers")
	setup.CheckStatus(t, m.cse(t))
	m.step(t, "provision-wait returned")
	m.awaitReady(t)
	m.step(t, "Ready")
	m.ask(t, recoveredFacts)
	if got := m.sums(t, m.files); !maps.Equal(got, m.files) {
		t.Errorf("other files than of an undisturbed run:\n got %v\nwant %v", got, m.files)
	}
	m.step(t, "facts checked")
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
