package ssh

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

func image(includes bool, units ...string) Server {
	return Server{Program: "/usr/sbin/sshd", Includes: includes, HasUnit: func(n string) bool { return slices.Contains(units, n) }}
}

func ids(rs []desired.Resource) []string {
	var out []string
	for _, r := range rs {
		out = append(out, string(r.ID()))
	}
	return out
}

// Whatever a distribution calls its units they are masked, and stopped after that;
// a socket first, so that nobody starts the service meanwhile.
func TestOff(t *testing.T) {
	rs := Off(image(true, "ssh.service", "ssh.socket", "sshd.service", "cron.service"))
	want := []string{
		"link:/etc/systemd/system/ssh.socket", "unit:ssh.socket", "link:/etc/systemd/system/ssh.service", "unit:ssh.service",
		"link:/etc/systemd/system/sshd.service", "unit:sshd.service",
	}
	if diff := cmp.Diff(want, ids(rs)); diff != "" {
		t.Error(diff)
	}
	st := golden.State(t, rs)
	last := st.Lookup("unit:sshd.service").(*desired.Unit)
	if diff := cmp.Diff([]desired.ID{"unit:ssh.socket", "unit:ssh.service", "link:/etc/systemd/system/sshd.service"}, last.After); diff != "" || last.Activation != desired.Stopped {
		t.Error(last.Activation, diff)
	}
	if mask := rs[0].(*desired.Link); mask.Target != "/dev/null" {
		t.Errorf("%+v", mask)
	}
	if rs := Off(image(true, "cron.service")); rs != nil {
		t.Errorf("no server, but %v", ids(rs))
	}
}

func TestWithoutKeys(t *testing.T) {
	for name, c := range map[string]struct {
		server Server
		want   []string
		text   func(st *desired.State) string
	}{
		"drop-in": {image(true, "ssh.service", "ssh.socket"), []string{"file:" + DropIn, "sshd:" + DropIn, "unit:ssh.service"},
			func(st *desired.State) string { return string(golden.File(t, st, DropIn).Content.Data()) }},
		"block": {image(false, "sshd.service"), []string{"block:" + Config + "#keys", "sshd:" + Config, "unit:sshd.service"},
			func(st *desired.State) string {
				b := st.Lookup(desired.BlockID(Config, "keys")).(*desired.Block)
				if !b.First {
					t.Error("others speak first")
				}
				return "# Written by berth.\n" + b.Lines
			}},
	} {
		t.Run(name, func(t *testing.T) {
			rs := WithoutKeys(c.server)
			if diff := cmp.Diff(c.want, ids(rs)); diff != "" {
				t.Error(diff)
			}
			if got := c.text(golden.State(t, rs)); got != "# Written by berth.\nPubkeyAuthentication no\n" {
				t.Errorf("%q", got)
			}
			proof, unit := rs[1].(*desired.SSHD), rs[2].(*desired.Unit)
			if !slices.Equal(unit.ReloadTriggers, []string{proof.Path}) || !slices.Equal(unit.After, []desired.ID{proof.ID()}) || !slices.Equal(proof.After, []desired.ID{rs[0].ID()}) {
				t.Errorf("%+v, %+v", proof, unit)
			}
		})
	}
	if rs := WithoutKeys(Server{HasUnit: func(string) bool { return true }}); rs != nil {
		t.Errorf("no server, but %v", ids(rs))
	}
}
