package machine

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/mdlayher/netlink"
)

// What the kernel says against a table stays to be found, whichever part of it is
// missing, and of a whole transaction the first word counts.
func TestFilterError(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOENT, syscall.EOPNOTSUPP, syscall.EPROTONOSUPPORT} {
		said := &netlink.OpError{Op: "receive", Err: os.NewSyscallError("recvmsg", errno)}
		for name, err := range map[string]error{"alone": said, "first": errors.Join(said, errors.New("what follows from it"))} {
			got := filterError("replace table", "berth", err)
			if !errors.Is(got, errno) || !strings.Contains(got.Error(), "inet berth") || strings.Contains(got.Error(), "follows") {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
}
