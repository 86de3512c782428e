package adminuser

import (
	"strings"
	"testing"
)

func TestAgeOf(t *testing.T) {
	for line, want := range map[string]struct {
		age     Age
		there   bool
		expires bool
	}{
		"u:x:19000:0:99999:7:::":         {Age{0, 99999, -1, -1}, true, false},
		"u:x:19000:0:90:7:30::":          {Age{0, 90, 30, -1}, true, true},
		"u:x:19000::::::":                {Age{-1, -1, -1, -1}, true, false},
		"u:x:19000:1:99999:7::20500:":    {Age{1, 99999, -1, 20500}, true, true},
		"u:x:19000:0:0:7:::":             {Age{0, 0, -1, -1}, true, true},
		"u:x:19000:0:-1:7:::":            {Age{0, -1, -1, -1}, true, false},
		"v:x:19000:0:90:7:::":            {},
		"u:x:19000:0:x:7:::":             {},
		"u:x":                            {},
		"":                               {},
		"uu:x:1:0:1:7:::\nu:x:1:0:9::::": {Age{0, 9, -1, -1}, true, true},
	} {
		age, there := AgeOf(line+"\n", "u")
		if age != want.age || there != want.there || there && age.Expires() != want.expires {
			t.Errorf("%q: %+v, %v", line, age, there)
		}
	}
	if got := strings.Join(Age{0, 90, 30, -1}.Arguments("u"), " "); got != "--mindays 0 --maxdays 90 --inactive 30 --expiredate -1 u" {
		t.Error(got)
	}
}

// What is read of a line can be written again.
func FuzzAgeOf(f *testing.F) {
	f.Add("u:x:19000:0:90:7:30::\n", "u")
	f.Fuzz(func(t *testing.T, shadow, user string) {
		age, there := AgeOf(shadow, user)
		if !there && age != (Age{}) || age.Min < -1 || age.Max < -1 || age.Inactive < -1 || age.Expire < -1 {
			t.Errorf("%+v", age)
		}
	})
}
