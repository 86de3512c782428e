package machine

import (
	"crypto/sha256"
	"errors"
	"testing"
	"time"
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

// BenchmarkWriteLarge is a file as large as a container runtime's release: what a
// download that is unpacked and hashed on the way writes, and how long the last
// step, Sync, takes of it.
func BenchmarkWriteLarge(b *testing.B) {
	h, err := New(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	piece := make([]byte, 256<<10)
	for i := range piece {
		piece[i] = byte(i * i >> 7)
	}
	var syncing time.Duration
	for b.Loop() {
		f, err := h.Create("/f")
		if err != nil {
			b.Fatal(err)
		}
		sum := sha256.New()
		for range 300 << 20 / len(piece) {
			sum.Write(piece)
			if _, err := f.Write(piece); err != nil {
				b.Fatal(err)
			}
		}
		began := time.Now()
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		syncing += time.Since(began)
		if err := errors.Join(f.Close(), h.Remove("/f")); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(syncing.Milliseconds())/float64(b.N), "sync-ms/op")
}
