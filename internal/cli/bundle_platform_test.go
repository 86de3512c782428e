package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/exitcode"
)

// elfOf is the head of a program for amd64 or arm64.
func elfOf(arch string) string {
	b := bytes.Repeat([]byte{0}, 64)
	copy(b, "\x7fELF\x02\x01\x01")
	b[18] = map[string]byte{"amd64": 0x3e, "arm64": 0xb7}[arch]
	return string(b) + "a program for " + arch
}

// TestBundleRefusesForeign has a program for another machine in a file.
func TestBundleRefusesForeign(t *testing.T) {
	s := newSite(t)
	write(t, s.path("arm"), elfOf("arm64"))
	code, _, said := s.run(t.Context(), "create --artifact tool=@/arm --platform linux/amd64 -o @/x")
	if code != exitcode.Failed || !strings.Contains(said, "artifact tool is a program for arm64, and the bundle is for linux/amd64") {
		t.Errorf("code %d: %s", code, said)
	}
	s.must("create --artifact tool=@/arm --platform linux/arm64 -o @/x")
	s.nothingLeft()
}
