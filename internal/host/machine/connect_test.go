package machine

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// A call that fails to write belongs to a lost connection, even while the reader
// has not noticed the loss yet: the call must be made again.
func TestCutBeforeTheReaderKnows(t *testing.T) {
	for _, err := range []error{
		dbus.ErrClosed,
		fmt.Errorf("write: %w", syscall.EPIPE),
		fmt.Errorf("write: %w", syscall.ECONNRESET),
	} {
		ours, theirs := net.Pipe()
		raw, dialErr := dbus.NewConn(ours)
		if dialErr != nil {
			t.Fatal(dialErr)
		}
		time.AfterFunc(20*time.Millisecond, func() { _ = errors.Join(theirs.Close(), raw.Close()) })
		if !(&connection{raw: raw}).cut(err) {
			t.Errorf("%v: not seen as a lost connection", err)
		}
	}
}
