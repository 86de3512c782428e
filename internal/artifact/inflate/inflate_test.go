package inflate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const text = "some text, some more text"

func gzipped(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstded(t testing.TB) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll([]byte(text), nil)
}

// skipped is a frame to skip, of three bytes.
var skipped = []byte{0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'x', 'y', 'z'}

func TestNew(t *testing.T) {
	for name, c := range map[string]struct {
		in     []byte
		packed bool
		window int
	}{
		"plain":                    {[]byte(text), false, 0},
		"gzip":                     {gzipped(t), true, 0},
		"zstd":                     {zstded(t), true, 1},
		"zstd, after what to skip": {append(bytes.Clone(skipped), zstded(t)...), true, 1},
	} {
		taken, held := 0, 0
		r, err := New(t.Context(), bytes.NewReader(c.in), 64, func(context.Context) (func(), error) {
			taken, held = taken+1, held+1
			return func() { held-- }, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || string(got) != text || r.Packed != c.packed || taken != c.window || held != c.window {
			t.Errorf("%s: %q, %v; packed %t, %d windows, %d held", name, got, err, r.Packed, taken, held)
		}
		if r.Close(); held != 0 {
			t.Errorf("%s: %d windows are held after the end", name, held)
		}
	}
	for _, short := range []string{"", "a", "\x1f", "\x28\xb5\x2f"} {
		r, err := New(t.Context(), strings.NewReader(short), 64, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != short {
			t.Errorf("%q: %q, %v", short, got, err)
		}
	}
}

func TestNewFails(t *testing.T) {
	no := errors.New("no")
	if _, err := New(t.Context(), bytes.NewReader(zstded(t)), 64, func(context.Context) (func(), error) { return nil, no }); !errors.Is(err, no) {
		t.Error(err)
	}
	if _, err := New(t.Context(), strings.NewReader("\x1f\x8bxx"), 64, nil); err == nil {
		t.Error("no error of half a header")
	}
	if _, err := New(t.Context(), io.MultiReader(strings.NewReader("x"), &failing{no}), 64, nil); !errors.Is(err, no) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

func FuzzNew(f *testing.F) {
	f.Add([]byte(text))
	f.Add(gzipped(f))
	f.Add(append(bytes.Clone(skipped), zstded(f)...))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := New(t.Context(), bytes.NewReader(raw), 64, nil)
		if err != nil {
			return
		}
		defer r.Close()
		if got, err := io.ReadAll(io.LimitReader(r, 1<<20)); !r.Packed && (err != nil || !bytes.Equal(got, raw)) {
			t.Errorf("%q: %q, %v", raw, got, err)
		}
	})
}
