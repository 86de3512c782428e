package vm

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

func TestReap(t *testing.T) {
	dir := t.TempDir()
	ok(t, Reap(dir)) // nothing there

	// Stands in for qemu by its command line only.
	left := exec.Command("sleep", "60")
	left.Args = []string{"qemu-system-x86_64 " + filepath.Join(dir, overlayName), "60"}
	ok(t, left.Start())
	other := exec.Command("sleep", "60")
	ok(t, other.Start())
	defer func() { other.Process.Kill(); other.Wait() }()

	write(t, dir, "qemu.pid", strconv.Itoa(other.Process.Pid))
	ok(t, Reap(dir))
	if !alive(other.Process.Pid) {
		t.Error("a process that is not ours was killed")
	}
	write(t, dir, "qemu.pid", strconv.Itoa(left.Process.Pid)+"\n")
	ok(t, Reap(dir))
	if err := left.Wait(); err == nil {
		t.Error("the process was not killed")
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("left: %v, %v", files, err)
	}
}

func alive(pid int) bool {
	_, err := os.Stat("/proc/" + strconv.Itoa(pid))
	return err == nil
}

func TestWaitSerial(t *testing.T) {
	v := &VM{changed: make(chan struct{}), cfg: Config{Dir: t.TempDir()}, qemu: &running{}}
	write(t, v.cfg.Dir, "serial.log", "login: old\n")
	offset := v.SerialSize()
	time.AfterFunc(50*time.Millisecond, func() {
		f, err := os.OpenFile(v.SerialLog(), os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			f.WriteString("login: new\n")
			f.Close()
		}
	})
	login := regexp.MustCompile(`login: \w+`)
	got, err := v.WaitSerial(t.Context(), offset, login)
	if err != nil || got != "login: new" {
		t.Errorf("%q, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := v.WaitSerial(ctx, v.SerialSize(), login); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	v.qemu = nil
	if _, err := v.WaitSerial(t.Context(), v.SerialSize(), login); !errors.Is(err, ErrOff) {
		t.Errorf("error %v", err)
	}
}
