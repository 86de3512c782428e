package machine

import (
	"testing"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"golang.org/x/sys/unix"
)

// A kernel without nf_tables has no tables, which is known; a permission that lacks says
// nothing.
func TestTableNamesWithoutTables(t *testing.T) {
	for number, none := range map[unix.Errno]bool{unix.EINVAL: true, unix.EOPNOTSUPP: true, unix.EPERM: false} {
		c, err := nftables.New(nftables.WithTestDial(func(req []netlink.Message) ([]netlink.Message, error) {
			if len(req) == 0 {
				return nil, nil
			}
			req[0].Header.Flags = 0 // an error without attributes
			return nltest.Error(int(number), req)
		}))
		if err != nil {
			t.Fatal(err)
		}
		if names, err := tableNames(c); len(names) > 0 || (err == nil) != none {
			t.Errorf("%v: %v, %v", number, names, err)
		}
	}
}
