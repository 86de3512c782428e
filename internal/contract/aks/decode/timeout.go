package decode

import "time"

const (
	usualTimeout   = 900
	longestTimeout = 21600
)

// Timeout is the time that a value of cse_timeout, in seconds, gives to the whole of provisioning. The contract
// reads what it does not take as its default.
func Timeout(seconds int64) time.Duration {
	if seconds <= 0 || seconds > longestTimeout {
		seconds = usualTimeout
	}
	return time.Duration(seconds) * time.Second
}
