package machine

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/internal/host"
)

// TestOldKernel: on a kernel that does not know how paths are found every error says so. A
// process of its own has a filter of system calls that answers as such a kernel does.
func TestOldKernel(t *testing.T) {
	const inFilter = "BERTH_TEST_WITHOUT_OPENAT2"
	if os.Getenv(inFilter) == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestOldKernel$")
		c.Env = append(os.Environ(), inFilter+"=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	withoutOpenat2(t)
	h, err := New("/")
	if err != nil {
		t.Fatal(err)
	}
	_, missing := h.Lstat("/etc/passwd")
	_, unread := h.ReadFile("/etc/passwd")
	for _, err := range []error{missing, unread} {
		if !errors.Is(err, host.ErrOldKernel) {
			t.Errorf("without openat2: %v", err)
		}
	}
}

func withoutOpenat2(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	load := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_OPENAT2},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	p := unix.SockFprog{Len: uint16(len(load)), Filter: &load[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&p)), 0, 0); err != nil {
		t.Fatal(err)
	}
}
