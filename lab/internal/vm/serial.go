package vm

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"time"
)

// SerialLog is the path of the console's log: all boots, oldest first.
func (v *VM) SerialLog() string { return v.path("serial.log") }

// SerialSize is how far the console's log goes at this moment, in bytes.
func (v *VM) SerialSize() int64 {
	info, err := os.Stat(v.SerialLog())
	if err != nil {
		return 0
	}
	return info.Size()
}

// WaitSerial returns the first match of re in the console's log after offset
// from. It fails when the machine turns off first.
func (v *VM) WaitSerial(ctx context.Context, from int64, re *regexp.Regexp) (string, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		on := v.Running()
		data, err := os.ReadFile(v.SerialLog())
		if err == nil && int64(len(data)) > from {
			if m := re.Find(data[from:]); m != nil {
				return string(m), nil
			}
		}
		if !on {
			return "", fmt.Errorf("wait for %q on the console: %w", re, ErrOff)
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("wait for %q on the console: %w", re, ctx.Err())
		case <-tick.C:
		}
	}
}
