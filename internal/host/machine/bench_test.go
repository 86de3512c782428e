package machine

import (
	"testing"
)

// BenchmarkUnit is a look at a service that runs, on an open connection. It needs
// a machine with systemd and dbus.
func BenchmarkUnit(b *testing.B) {
	h, err := New("/")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := h.Unit(b.Context(), "dbus.service"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFirstUnit is the same with a connection of its own.
func BenchmarkFirstUnit(b *testing.B) {
	for b.Loop() {
		m := &manager{}
		if _, err := m.Unit(b.Context(), "dbus.service"); err != nil {
			b.Fatal(err)
		}
		m.conn.Close()
	}
}

// BenchmarkReadFile is path resolution and reading of a small file.
func BenchmarkReadFile(b *testing.B) {
	h, err := New("/")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := h.ReadFile("/etc/passwd"); err != nil {
			b.Fatal(err)
		}
	}
}
