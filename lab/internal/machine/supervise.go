// Package machine runs nodes as systemd-nspawn machines.
package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/berth-dev/berth/lab/internal/cgroup"
	"github.com/berth-dev/berth/lab/internal/netns"
	"github.com/berth-dev/berth/lab/internal/proc"
)

// rebooted is nspawn's exit status when a machine under --keep-unit reboots.
const rebooted = 133

// Spec is what the supervisor of a machine needs to know.
type Spec struct {
	Namespace netns.Namespace
	Machine   string   // nspawn's name; at most 12 characters, so that Link is a valid name
	Dir       string   // root, containerd, kubelet, nspawn.json
	Cgroups   []string // the machine's own groups
	CgroupV2  bool
}

// Running is what the supervisor writes to nspawn.json.
type Running struct {
	Supervisor proc.ID
	Nspawn     proc.ID
	Boots      int
}

// Supervise is the background process of one machine: it keeps nspawn running
// over reboots and ends when the machine is powered off.
func Supervise(args []byte) error {
	var s Spec
	if err := json.Unmarshal(args, &s); err != nil {
		return fmt.Errorf("decode machine: %w", err)
	}
	if err := cgroup.Enter(s.Cgroups); err != nil {
		return err
	}
	for boots := 1; ; boots++ {
		code, err := s.boot(boots)
		if err != nil || code != rebooted {
			return errors.Join(err, os.Remove(s.pidFile()))
		}
	}
}

func (s Spec) pidFile() string { return filepath.Join(s.Dir, "nspawn.json") }

func (s Spec) boot(boots int) (code int, err error) {
	cmd := s.command()
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start nspawn: %w", err)
	}
	if err := s.record(cmd.Process.Pid, boots); err != nil {
		return 0, errors.Join(err, cmd.Process.Kill())
	}
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return 0, fmt.Errorf("wait for nspawn: %w", err)
	}
	return cmd.ProcessState.ExitCode(), nil
}

func (s Spec) command() *exec.Cmd {
	cmd := exec.Command("nsenter", append([]string{"--net=" + s.Namespace.Path(), "--", "systemd-nspawn"}, s.nspawnArgs()...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "SYSTEMD_NSPAWN_LOCK=0")
	if s.CgroupV2 {
		cmd.Env = append(cmd.Env, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
	}
	return cmd
}

func (s Spec) nspawnArgs() []string {
	return []string{
		"--quiet", "--boot", "--directory=" + filepath.Join(s.Dir, "root"), "--machine=" + s.Machine,
		"--register=no", "--keep-unit", "--network-bridge=" + netns.Bridge, "--capability=all",
		"--system-call-filter=@keyring bpf perf_event_open add_key @mount @module",
		"--resolv-conf=off", "--timezone=off", "--link-journal=no", "--console=pipe",
		"--bind=" + filepath.Join(s.Dir, "containerd") + ":/var/lib/containerd",
		"--bind=" + filepath.Join(s.Dir, "kubelet") + ":/var/lib/kubelet",
		"--bind=/dev/kmsg",
	}
}

func (s Spec) record(pid, boots int) error {
	self, err := proc.Self()
	if err != nil {
		return err
	}
	nspawn, err := proc.Of("nspawn", pid)
	if err != nil {
		return err
	}
	b, err := json.Marshal(Running{self, nspawn, boots})
	if err != nil {
		return fmt.Errorf("encode machine state: %w", err)
	}
	tmp := s.pidFile() + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return fmt.Errorf("write machine state: %w", err)
	}
	return os.Rename(tmp, s.pidFile())
}
