package identity

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// A token that a file or a variable holds is read when a certificate is asked for.
func TestIssueReadsTheToken(t *testing.T) {
	c := newCluster(t)
	want := c.wants(10 * time.Second)
	token := want.Token.Reveal()
	m := clock{memory.New(), 0}
	m.Put("/token", token+"\n", 0o600)
	t.Setenv("BERTH_TEST_TOKEN", token)
	for name, change := range map[string]func(*desired.ClientCertificate){
		"file":     func(d *desired.ClientCertificate) { d.TokenFile = "/token" },
		"variable": func(d *desired.ClientCertificate) { d.TokenEnv = "BERTH_TEST_TOKEN" },
	} {
		d := c.wants(10 * time.Second)
		d.Token = ""
		change(d)
		if _, err := New(m).Issue(t.Context(), d); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		c.remove()
	}
}

func TestIssueSaysWhichToken(t *testing.T) {
	m := clock{memory.New(), 0}
	m.Put("/odd", "SECRETSECRET", 0o600)
	for name, d := range map[string]*desired.ClientCertificate{
		"/absent": {TokenFile: "/absent"}, "/odd": {TokenFile: "/odd"}, "BERTH_NO_TOKEN": {TokenEnv: "BERTH_NO_TOKEN"},
	} {
		_, err := New(m).Issue(t.Context(), d)
		for _, err := range []error{err, New(m).Lacks(d)} {
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Reason != ReasonNoToken || !strings.Contains(e.Remedy, name) || strings.Contains(err.Error(), "SECRET") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
