package packetfilter

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

// What the contract asks for is in the table, and the file brings back the same.
func TestResources(t *testing.T) {
	const wire = "wireserver forward 0: 168.63.129.16:80 168.63.129.16:32526"
	for name, c := range map[string]struct {
		settings Settings
		want     []string
		program  string
	}{
		"always":    {Settings{}, []string{wire}, Program},
		"metadata":  {Settings{RestrictMetadata: true}, []string{wire, "metadata forward 0: 169.254.169.254:80"}, Program},
		"in mangle": {Settings{RestrictMetadata: true, InMangle: true}, []string{wire, "metadata forward -150: 169.254.169.254:80"}, Program},
		"localdns": {Settings{LocalDNS: []netip.Addr{netip.MustParseAddr("169.254.10.10")}},
			[]string{wire, "localdns-output output -300: untracked tcp 169.254.10.10:53 untracked udp 169.254.10.10:53",
				"localdns-prerouting prerouting -300: untracked tcp 169.254.10.10:53 untracked udp 169.254.10.10:53"}, Program},
		"elsewhere": {Settings{InMangle: true, Program: "/usr/bin/berth"}, []string{wire}, "/usr/bin/berth"},
		"iptables":  {Settings{IPTables: "/usr/sbin/iptables"}, []string{wire}, Program},
	} {
		t.Run(name, func(t *testing.T) {
			iptables := ""
			if p := c.settings.IPTables; p != "" {
				iptables = " --iptables " + p
			}
			rs, err := Resources(c.settings)
			if err != nil {
				t.Fatal(err)
			}
			st := golden.State(t, rs)
			p := st.Lookup(desired.PacketFilterID(Table)).(*desired.PacketFilter)
			if diff := cmp.Diff(c.want, said(p)); diff != "" {
				t.Error(diff)
			}
			again, err := Read(golden.File(t, st, RulesFile).Content.Data())
			if err != nil || !cmp.Equal(said(p), said(again)) {
				t.Errorf("read back: %v, %v", again, err)
			}
			if text := string(golden.File(t, st, DropIn).Content.Data()); !strings.Contains(text, "\nExecStartPre="+c.program+" node firewall"+iptables+"\n") {
				t.Errorf("drop-in: %s", text)
			}
		})
	}
}

func said(p *desired.PacketFilter) []string {
	var out []string
	for _, c := range p.Chains {
		line := fmt.Sprintf("%s %s %d:", c.Name, c.Hook, c.Priority)
		for _, d := range c.Drop {
			line += fmt.Sprintf(" %s:%d", d.To, d.TCPPort)
		}
		for _, u := range c.Untracked {
			line += fmt.Sprintf(" untracked %s %s:%d", u.Protocol, u.To, u.Port)
		}
		out = append(out, line)
	}
	return out
}

// A file that somebody spoiled is no table: nothing is then in force that looks so.
func TestReadRefuses(t *testing.T) {
	for _, text := range []string{"", "{", "{}", `{"table":"berth","chains":[{"name":"c","hook":"forward","drop":[]}]}`, `{"table":"berth","chains":[{"name":"c","hook":"forward","drop":[{"to":"x","tcpPort":80}]}]}`} {
		if p, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), RulesFile) {
			t.Errorf("%q: %v, %v", text, p, err)
		}
	}
}
