package converge_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
)

// Large files that the state gives are compared by content like small ones: as a
// trigger, as berth's own that goes, and as an original that comes back.
func TestLargeFiles(t *testing.T) {
	const p = "/etc/large"
	text := func(s string) string { return strings.Repeat(s, 1<<20+1) }
	unit := started("containerd.service", p)
	h := newMachine()
	h.Put(p, text("o"), 0o644)

	runs(t, h, sealed(t, unit, managed(p, text("a"))))
	converged(t, h, sealed(t, unit, managed(p, text("a"))))
	h.ForgetJobs()
	runs(t, h, sealed(t, unit, managed(p, text("b"))))
	converged(t, h, sealed(t, unit, managed(p, text("b"))))
	if got := joinJobs(h); got != "restart containerd.service\n" {
		t.Errorf("jobs %q", got)
	}
	plan := runs(t, h, sealed(t, unit))
	if diff := cmp.Diff([]string{"restore file:" + p, "restart unit:containerd.service"}, verbs(plan)); diff != "" {
		t.Errorf("%s%v", diff, plan.Kept)
	}
	has(t, h, p, text("o"))
	converged(t, h, sealed(t, unit))
}

// Programs are not read in every plan: size, inode and time say that another came.
func TestLargePrograms(t *testing.T) {
	const p = "/opt/bin/kubelet"
	h := newMachine()
	h.Put(p, strings.Repeat("x", 1<<20+1), 0o755)
	h.Put("/usr/lib/systemd/system/kubelet.service", kubeletUnit, 0o644)
	s := sealed(t, started("kubelet.service", p), &desired.Artifact{Name: "kubelet", Files: []desired.ArtifactFile{{Path: p, Mode: 0o755}}})
	runs(t, h, s)
	converged(t, h, s)
	h.Put(p, strings.Repeat("y", 1<<20+1), 0o755)
	if got := verbs(runs(t, h, s)); len(got) != 1 || got[0] != "restart unit:kubelet.service" {
		t.Errorf("plan %q", got)
	}
	converged(t, h, s)
}
