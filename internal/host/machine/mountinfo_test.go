package machine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host"
)

func TestParseMountinfo(t *testing.T) {
	got, err := parseMountinfo(`22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
40 22 0:36 / /mnt/with\040space\134and\011tab rw,nosuid - tmpfs a\040b rw,size=4096k
41 22 0:37 /sub /one ro shared:2 master:3 propagate_from:1 - overlay overlay ro,lowerdir=/a\054b
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []host.Mount{
		{Source: "/dev/vda", Target: "/", Type: "ext4", Options: []string{"rw", "relatime", "discard"}},
		{Source: "a b", Target: "/mnt/with space\\and\ttab", Type: "tmpfs", Options: []string{"rw", "nosuid", "size=4096k"}},
		{Source: "overlay", Target: "/one", Type: "overlay", Options: []string{"ro", "lowerdir=/a,b"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"\n", "x", "22 1 254:0 / / rw ext4 /dev/vda rw", "22 1 254:0 / / - ext4 /dev/vda rw", "22 1 254:0 / / rw - ext4 rw"} {
		if got, err := parseMountinfo(bad); err == nil {
			t.Errorf("%q is %v", bad, got)
		}
	}
}

// escaped is how the kernel prints a name.
func escaped(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(" \t\n\\#", s[i]) >= 0 {
			fmt.Fprintf(&b, `\%03o`, s[i])
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// FuzzMountinfo: whatever a target's and a source's names are, they come back;
// and no text makes the parser fall over.
func FuzzMountinfo(f *testing.F) {
	f.Add("/mnt/a b", "tmp\\fs\n#")
	f.Add("/\\040 - ", "\xff\\")
	f.Fuzz(func(t *testing.T, target, source string) {
		_, _ = parseMountinfo(target)
		got, err := parseMountinfo("1 2 0:3 / " + escaped(target) + " rw - tmpfs " + escaped(source) + " rw\n")
		if err != nil || len(got) != 1 || got[0].Target != target || got[0].Source != source {
			t.Errorf("%q and %q: %v, %v", target, source, got, err)
		}
	})
}
