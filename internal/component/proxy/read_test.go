package proxy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/internal/desired"
)

// What the file says is what was written into it, passwords with marks of a shell included.
func TestRead(t *testing.T) {
	s := Settings{HTTP: `http://u:p"a$s\s` + "`" + `w@proxy.example:3128`, HTTPS: "proxy.example:3129", Direct: []string{"10.0.0.1", ".svc"}}
	got, err := Read(s.file())
	want := &desired.Egress{HTTPProxy: s.HTTP, HTTPSProxy: s.HTTPS, NoProxy: s.Direct}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if got, err := Read("# nothing\n"); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, text := range []string{"HTTP_PROXY", "HTTP_PROXY=x", `HTTP_PROXY="x`, `HTTP_PROXY="x\"`, `HTTP_PROXY="x"y"`, `HTTP_PROXY="`} {
		if got, err := Read("# Written by berth.\n" + text + "\n"); err == nil || strings.Contains(err.Error(), "x") {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("http://u:p@proxy:1", "proxy:2", "10.0.0.1,.svc")
	f.Fuzz(func(t *testing.T, http, https, direct string) {
		s := Settings{HTTP: desired.Secret(http), HTTPS: desired.Secret(https)}
		if direct != "" {
			s.Direct = strings.Split(direct, ",")
		}
		if strings.Contains(http+https+direct, "\n") || http+https == "" {
			return // no address has a line break
		}
		got, err := Read(s.file())
		want := &desired.Egress{HTTPProxy: s.HTTP, HTTPSProxy: s.HTTPS, NoProxy: s.Direct}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}
