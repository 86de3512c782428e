package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/internal/host"
)

// bootTarget is up from early in a boot until its end. A restart of userspace alone
// stops it as all others, and systemd starts it anew
// (systemd-soft-reboot.service(8), since systemd 254); the kernel's boot ID and /run stay.
const bootTarget = "sysinit.target"

// Boot is one run of the machine's userspace: what ran, what systemd had read and what
// nobody had confirmed ends with it, whether the kernel was started anew or not. What the
// kernel keeps goes by the kernel's boot ID alone.
type Boot struct {
	// Kernel is the kernel's boot ID; "" where nothing tells it: then every boot is the
	// same.
	Kernel string `json:"boot,omitempty"`
	// Userspace is the invocation ID of bootTarget; "" where nothing tells it, as without
	// systemd, and in what an earlier berth has written.
	Userspace string `json:"userspace,omitempty"`
}

// PresentBoot is the one in which this process runs.
func PresentBoot(ctx context.Context, h host.Host) (Boot, error) {
	b := Boot{Kernel: kernelBoot(h)}
	run, err := h.Invocation(ctx, bootTarget)
	if err != nil && !errors.Is(err, host.ErrNoSystemd) {
		return b, fmt.Errorf("ask which boot this is: %w", err)
	}
	b.Userspace = run
	return b, nil
}

// IsPresent says whether the machine has run since then without a restart, be it of
// userspace alone. What is not known of one of the two says nothing.
func (b Boot) IsPresent(ctx context.Context, h host.Host) (bool, error) {
	if b.Kernel != kernelBoot(h) {
		return false, nil
	}
	now, err := PresentBoot(ctx, h)
	return b.Userspace == "" || now.Userspace == "" || b.Userspace == now.Userspace, err
}

func kernelBoot(h host.FS) string {
	id, _, _ := ReadFile(h, "/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}
