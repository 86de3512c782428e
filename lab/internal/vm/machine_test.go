//go:build vm

// These tests boot an emulated machine: minutes, not seconds. They need root
// and BERTH_VM_ROOTFS, a prepared tree (see PrepareRootfs).
package vm

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func testImage(t *testing.T) Image {
	t.Helper()
	rootfs := os.Getenv("BERTH_VM_ROOTFS")
	if rootfs == "" {
		t.Fatal("BERTH_VM_ROOTFS is not set")
	}
	if err := PrepareRootfs(rootfs); err != nil {
		t.Fatal(err)
	}
	step := stopwatch(t)
	img, err := BuildImage(t.Context(), ImageOptions{Rootfs: rootfs, Out: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	step("image built")
	return img
}

func stopwatch(t *testing.T) func(string) {
	last := time.Now()
	return func(what string) {
		t.Helper()
		t.Logf("%6.1f s  %s", time.Since(last).Seconds(), what)
		last = time.Now()
	}
}

func testVM(t *testing.T, ctx context.Context, img Image) *VM {
	t.Helper()
	dir, err := os.MkdirTemp("", "vm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	spawn := testNetwork(t, ctx)
	const mac = "52:54:00:12:34:01"
	v, err := New(ctx, Config{
		Name: "probe", Dir: dir, Image: img, MAC: mac, Tap: "tap-probe", Spawn: spawn,
		Seed: SeedFor("i-probe", "probe", mac, "10.98.0.2/24", "10.98.0.1",
			[]byte("#cloud-config\nruncmd:\n- [touch, /run/from-user-data]\n")),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(tail(v.SerialLog()))
		}
	})
	return v
}

// testNetwork makes a namespace with a bridge and one tap in it.
func testNetwork(t *testing.T, ctx context.Context) Spawner {
	t.Helper()
	const ns = "berth-vm-test"
	ok(t, run(exec.CommandContext(ctx, "ip", "netns", "add", ns)))
	t.Cleanup(func() { ok(t, run(exec.Command("ip", "netns", "del", ns))) })
	inside := Spawner(func(cmd *exec.Cmd) error {
		nsenter, err := exec.LookPath("nsenter")
		if err != nil {
			return err
		}
		cmd.Args = append([]string{"nsenter", "--net=/run/netns/" + ns}, cmd.Args...)
		cmd.Path = nsenter
		return cmd.Start()
	})
	for _, args := range []string{
		"link add br0 type bridge forward_delay 0", "addr add 10.98.0.1/24 dev br0", "link set br0 up",
	} {
		ok(t, inside.run(exec.CommandContext(ctx, "ip", strings.Fields(args)...)))
	}
	ok(t, AddTap(ctx, inside, "br0", "tap-probe"))
	return inside
}

// must returns what the command prints, without the last line break.
func must(t *testing.T, ctx context.Context, v *VM, shell string) string {
	t.Helper()
	out, err := v.Output(ctx, "sh", "-c", shell)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestMachine(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	v := testVM(t, ctx, testImage(t))
	// In order: each part starts where the one before it left the machine.
	for _, part := range []func(*testing.T, context.Context, *VM){
		firstBoot, orderlyReboot, powerCut, guestFiles, savedState, powerDown,
	} {
		part(t, ctx, v)
	}
}

func firstBoot(t *testing.T, ctx context.Context, v *VM) {
	step := stopwatch(t)
	ok(t, v.Boot(ctx))
	step("qemu started")
	ok(t, v.WaitAgent(ctx))
	step("agent answers")
	must(t, ctx, v, "while ! systemctl is-active --quiet network-online.target; do sleep 0.1; done")
	step("network is online")
	must(t, ctx, v, "ping -c 1 -W 5 10.98.0.1 && cloud-init status --wait")
	step("cloud-init finished")
	t.Log(must(t, ctx, v, "uname -r; findmnt -no FSTYPE,OPTIONS /; systemd-analyze"))
	for question, want := range map[string]string{
		"hostname":                       "probe",
		"stat -fc %T /sys/fs/cgroup":     "cgroup2fs",
		"ls /run/from-user-data":         "/run/from-user-data",
		"systemctl --failed --no-legend": "",
		"dumpe2fs -h /dev/vda 2>/dev/null | grep -c has_journal": "1",
	} {
		if got := must(t, ctx, v, question); got != want {
			t.Errorf("%s: %q, want %q", question, got, want)
		}
	}
}

func orderlyReboot(t *testing.T, ctx context.Context, v *VM) {
	first, err := v.BootID(ctx)
	ok(t, err)
	step := stopwatch(t)
	ok(t, v.Reboot(ctx))
	step("rebooted, agent answers")
	second, err := v.BootID(ctx)
	ok(t, err)
	if first == second || v.Resets() != 1 {
		t.Errorf("boot ids %s and %s, resets %d", first, second, v.Resets())
	}
}

func powerCut(t *testing.T, ctx context.Context, v *VM) {
	must(t, ctx, v, "echo kept >/root/synced; sync /root/synced /root; dd if=/dev/urandom of=/root/unsynced bs=1M count=8 2>&1")
	offset := v.SerialSize()
	step := stopwatch(t)
	ok(t, v.PowerCut())
	if v.Running() {
		t.Fatal("still running")
	}
	ok(t, v.Boot(ctx))
	ok(t, v.WaitAgent(ctx))
	step("power cut and booted again, agent answers")
	got := must(t, ctx, v, "cat /root/synced; stat -c %s /root/unsynced 2>/dev/null || echo lost; ls /run/from-user-data 2>/dev/null || echo once")
	if !regexp.MustCompile(`^kept\n(0|lost)\nonce$`).MatchString(got) {
		t.Errorf("after the power cut: %q", got)
	}
	if _, err := v.WaitSerial(ctx, offset, regexp.MustCompile(`EXT4-fs \(vda\): mounted filesystem`)); err != nil {
		t.Error(err)
	}
}

func guestFiles(t *testing.T, ctx context.Context, v *VM) {
	payload := []byte(strings.Repeat("0123456789abcdef", 1<<17))
	step := stopwatch(t)
	ok(t, v.WriteFile(ctx, "/root/payload", payload, 0o600))
	step("2 MiB written")
	back, err := v.ReadFile(ctx, "/root/payload")
	ok(t, err)
	step("2 MiB read")
	if string(back) != string(payload) || must(t, ctx, v, "stat -c %a /root/payload") != "600" {
		t.Error("the file came back different")
	}
	r, err := v.Exec(ctx, []byte("in"), "sh", "-c", "cat; echo err >&2; exit 7")
	ok(t, err)
	if r.ExitCode != 7 || string(r.Stdout) != "in" || string(r.Stderr) != "err\n" {
		t.Errorf("exec: %+v", r)
	}
}

func savedState(t *testing.T, ctx context.Context, v *VM) {
	step := stopwatch(t)
	must(t, ctx, v, "systemctl is-system-running --wait || true")
	step("boot complete")
	ok(t, v.SaveState(ctx, "here"))
	step("state saved")
	for range 2 {
		must(t, ctx, v, "test ! -e /root/later && touch /root/later && sync")
		ok(t, v.PowerCut())
		ok(t, v.BootState(ctx, "here"))
		must(t, ctx, v, "ping -c 1 -W 5 10.98.0.1")
		step("power cut, back in the saved state")
	}
	guest, err := strconv.ParseInt(must(t, ctx, v, "date +%s"), 10, 64)
	ok(t, err)
	if now := time.Now().Unix(); guest < now-3 || guest > now+3 {
		t.Errorf("the guest's clock says %d, not %d", guest, now)
	}
}

func powerDown(t *testing.T, ctx context.Context, v *VM) {
	step := stopwatch(t)
	ok(t, v.PowerDown(ctx))
	step("powered down")
	// A power cut may leak clusters (3); it may not corrupt (2).
	check := exec.CommandContext(ctx, "qemu-img", "check", v.path(overlayName))
	if out, err := check.CombinedOutput(); err != nil && check.ProcessState.ExitCode() != 3 {
		t.Errorf("disk: %v: %s", err, out)
	}
	ok(t, Reap(v.cfg.Dir))
	if _, err := os.Stat(v.path("qemu.pid")); err == nil {
		t.Error("pid file left")
	}
}
