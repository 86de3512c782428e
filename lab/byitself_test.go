package lab

import "testing"

func TestChangesByItself(t *testing.T) {
	for path, want := range map[string]bool{
		"/run": true, "/run/berth/lock": true, "/running": false, "/var/lib/systemd/timers": true, "/var/lib": false,
		"/etc/resolv.conf": true, "/": false, "# What a Debian machine changes": false, "": false,
	} {
		if got := ChangesByItself(path); got != want {
			t.Errorf("%q: %t", path, got)
		}
	}
}
