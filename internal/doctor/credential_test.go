package doctor

import (
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
)

// What the token of an identity fails by has its own remedy; only what others may not
// read is root's to look at.
func TestNoAzureCredential(t *testing.T) {
	const own = "do what helps"
	for name, tc := range map[string]struct {
		err    error
		want   Status
		remedy string
	}{
		"no az":               {&fs.PathError{Op: "fork/exec", Path: "az", Err: syscall.ENOENT}, Error, own},
		"az for others":       {&fs.PathError{Op: "fork/exec", Path: "az", Err: syscall.EACCES}, Error, own},
		"a file that is gone": {&fs.PathError{Op: "lstat", Path: "/var/opt/azcmagent/tokens/a.key", Err: syscall.ENOENT}, Error, own},
		"a packet filter":     {&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EPERM)}, Error, own},
		"a file of root":      {&fs.PathError{Op: "open", Path: "/etc/berth/secret", Err: syscall.EACCES}, Unknown, asRoot},
	} {
		err := &exitcode.Error{Number: exitcode.Credential, Remedy: own, Err: tc.err}
		r := noCredential(&credential{azure: desired.AzureArc, field: "identity"}, err).result()
		if r.Status != tc.want || !strings.Contains(r.Remedy, tc.remedy) {
			t.Errorf("%s: %s %q: %s", name, r.Status, r.Finding, r.Remedy)
		}
	}
}
