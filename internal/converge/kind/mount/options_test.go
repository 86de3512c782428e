package mount

import "testing"

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		want, have     []string
		lacks, exceeds string
	}{
		{nil, []string{"rw", "relatime", "size=1024k"}, "", ""},
		{[]string{"size=1m", "mode=0755"}, []string{"rw", "size=1024k", "mode=755"}, "", ""},
		{[]string{"size=1G"}, []string{"size=1048576k"}, "", ""},
		{[]string{"size=2m"}, []string{"size=1024k"}, "mounted with size=1024k, want size=2m", ""},
		{[]string{"noexec", "nodev"}, []string{"rw", "nodev"}, "mounted without noexec", ""},
		{[]string{"nodev"}, []string{"ro", "nodev"}, "", "mounted with ro"},
		{[]string{"size=50%", "defaults", "data=ordered"}, []string{"rw"}, "", ""},
		{[]string{"data=", "errors=remount-ro"}, []string{"errors=continue"}, "mounted with errors=continue, want errors=remount-ro", ""},
	} {
		if got := lacks(c.want, c.have); got != c.lacks {
			t.Errorf("%v of %v: lacks %q, want %q", c.want, c.have, got, c.lacks)
		}
		if got := exceeds(c.want, c.have); got != c.exceeds {
			t.Errorf("%v of %v: exceeds %q, want %q", c.want, c.have, got, c.exceeds)
		}
	}
}

func FuzzNumber(f *testing.F) {
	for _, s := range []string{"", "k", "1m", "0755", "99999999999999999999g"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if one := number(s); number(one) != one {
			t.Errorf("%q: %q, then %q", s, one, number(one))
		}
	})
}
