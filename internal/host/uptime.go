package host

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Uptime is how long the machine has been up (proc_uptime(5)): what is left of a time
// that is counted by it does not change with the clock.
func Uptime(h FS) (time.Duration, error) {
	text, err := h.ReadFile("/proc/uptime")
	if err != nil {
		return 0, err
	}
	up, _, _ := strings.Cut(string(text), " ")
	return ParseSeconds(up)
}

// ParseSeconds reads a number of seconds that fits into a Duration.
func ParseSeconds(text string) (time.Duration, error) {
	s, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return 0, err
	}
	if !(s >= 0 && s < 1e9) { // thirty years
		return 0, fmt.Errorf("%v seconds is no time", s)
	}
	return time.Duration(s * float64(time.Second)), nil
}
