package vm

import "testing"

// TestKernelStage: a kernel counts as hanging only where it has begun and has run nothing.
func TestKernelStage(t *testing.T) {
	for said, want := range map[string]bootStage{
		"": noKernel,
		"[   12.1] systemd[1]: Started cron.service\n":                                          noKernel,
		"[    0.000000] Linux version 6.1.0\n[    3.7] sched_clock: Marking stable\n":           kernelOnly,
		"[    0.000000] Linux version 6.1.0\n[    5.372515] Run /init as init process\nLoading": ranProgram,
	} {
		if got := kernelStage(said); got != want {
			t.Errorf("%q: %d, want %d", said, got, want)
		}
	}
}
