package apicheck

import (
	"time"

	"github.com/berth-dev/berth/internal/desired"
)

// Outbound is the check that the machine has a way out: the command ends with exit
// code 0. No shell is involved.
func Outbound(command []string, timeout time.Duration) *desired.Check {
	return &desired.Check{Name: desired.CheckOutbound, Command: command, Timeout: timeout}
}
