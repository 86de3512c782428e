package sysctl

import (
	"errors"
	"testing"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// racing is a machine on which somebody else writes the same value under another
// name: for the first reads the old one is back.
type racing struct {
	host.FS
	path  string
	stale int
}

func (r *racing) ReadFile(p string) ([]byte, error) {
	if p == r.path && r.stale > 0 {
		r.stale--
		if err := r.WriteValue(p, []byte("0\n")); err != nil {
			return nil, err
		}
	}
	return r.FS.ReadFile(p)
}

func TestSetAgainstAnotherWriter(t *testing.T) {
	const key = "net.ipv4.ip_forward"
	for name, c := range map[string]struct {
		stale int
		want  string // of the error
	}{
		"nobody else":    {0, ""},
		"once":           {1, ""},
		"almost always":  {attempts - 1, ""},
		"never wins":     {attempts, "set net.ipv4.ip_forward to 1: the kernel made it 0"},
		"never wins, on": {attempts + 5, "set net.ipv4.ip_forward to 1: the kernel made it 0"},
	} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			h.Value(file(key), "0")
			err := Set(&racing{FS: h, path: file(key), stale: c.stale}, key, "1")
			if got := message(err); got != c.want {
				t.Fatalf("error %q, want %q", got, c.want)
			}
			if e, ok := errors.AsType[*Error](err); ok && (e.Key != key || e.Value != "1") {
				t.Errorf("%+v", e)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
