package report

import (
	"context"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/host"
)

// The two published forms of a time: as systemd prints its properties, and as
// date(1) prints in the C locale (CSEStartTime only).
const (
	systemdForm = "Mon 2006-01-02 15:04:05 MST"
	dateForm    = "Mon Jan _2 15:04:05 MST 2006"
)

// CloudInitUnits are the names of the stage of cloud-init that sets the hostname
// and runs boothooks: before version 24.3, and since then.
var CloudInitUnits = []string{"cloud-init.service", "cloud-init-network.service"}

// Boot is when the parts of this boot started, in provision.json's own forms.
// What the machine does not have is empty.
type Boot struct {
	Kernel, CloudInitLocal, CloudInit, CloudFinal, Networkd, GuestAgent, Kubelet string
	// Summary is what systemd-analyze says; empty until the boot has finished.
	Summary string
}

// ReadBoot asks systemd; kubelet is kubelet's unit. What every boot has comes first:
// on a machine under load the time may not do for all.
func ReadBoot(ctx context.Context, h host.Host, kubelet string) Boot {
	kernel, finished := managerTimes(ctx, h)
	b := Boot{
		Kernel:         kernel,
		Kubelet:        started(ctx, h, kubelet),
		CloudInitLocal: started(ctx, h, "cloud-init-local.service"),
		CloudInit:      started(ctx, h, CloudInitUnits...),
		CloudFinal:     started(ctx, h, "cloud-final.service"),
		Networkd:       started(ctx, h, "systemd-networkd.service"),
		GuestAgent:     started(ctx, h, "walinuxagent.service", "waagent.service"),
	}
	if finished {
		b.Summary = printed(ctx, h, "/usr/bin/systemd-analyze", "time")
	}
	return b
}

// Into puts the times where the published result has them.
func (b Boot) Into(d *Result) {
	d.KernelStartTime, d.SystemdSummary = b.Kernel, b.Summary
	d.CloudInitLocalStartTime, d.CloudInitStartTime, d.CloudFinalStartTime = b.CloudInitLocal, b.CloudInit, b.CloudFinal
	d.NetworkdStartTime, d.GuestAgentStartTime = b.Networkd, b.GuestAgent
	d.BootDatapoints.KernelStartTime = b.Kernel
	d.BootDatapoints.GuestAgentStartTime = b.GuestAgent
	d.BootDatapoints.KubeletStartTime = b.Kubelet
}

// started is when the first of the units that ever ran started.
func started(ctx context.Context, h host.Host, units ...string) string {
	for _, u := range units {
		if s, err := h.Unit(ctx, u); err == nil && !s.ExecMainStart.IsZero() {
			return SystemdTime(s.ExecMainStart)
		}
	}
	return ""
}

// managerTimes returns when the kernel started (in a container, which has none
// of its own, when systemd did) and whether the boot has finished.
func managerTimes(ctx context.Context, h host.Host) (kernel string, finished bool) {
	out := printed(ctx, h, "/usr/bin/systemctl", "show",
		"--property=KernelTimestamp", "--property=UserspaceTimestamp", "--property=FinishTimestamp")
	v := map[string]string{}
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if value != "n/a" {
			v[key] = value
		}
	}
	kernel = v["KernelTimestamp"]
	if kernel == "" {
		kernel = v["UserspaceTimestamp"]
	}
	return kernel, v["FinishTimestamp"] != ""
}

func printed(ctx context.Context, h host.Runner, path string, args ...string) string {
	out, err := h.Run(ctx, host.Command{Path: path, Args: args})
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out.Stdout))
}

// BootID is the kernel's name for the present boot; "" if it can't be read. A restart of
// userspace alone keeps it (see ledger.Boot): a result from before one counts as the
// present boot's, and who waits for another run is told of it at once.
func BootID(h host.FS) string {
	b, err := h.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// SystemdTime prints a time as systemd prints its properties.
func SystemdTime(t time.Time) string { return t.Local().Format(systemdForm) }

// DateTime prints a time as date(1) does.
func DateTime(t time.Time) string { return t.Local().Format(dateForm) }
