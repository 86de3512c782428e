package hostsagent

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

const name = "c-1.0123.privatelink.westeurope.azmk8s.io"

func TestResources(t *testing.T) {
	s := Settings{Name: name, Address: netip.MustParseAddr("10.224.0.4"), Program: "/usr/bin/berth"}
	st := golden.State(t, Resources(s))
	b, ok := st.Lookup(desired.BlockID(File, Block)).(*desired.Block)
	if !ok || b.Lines != "10.224.0.4 "+name+"\n" || !b.First {
		t.Errorf("%+v", b)
	}
	if text := string(golden.File(t, st, unitDir+Unit).Content.Data()); !strings.Contains(text, "\nExecStart=/usr/bin/berth node hosts-agent "+name+"\n") {
		t.Error(text)
	}
	if text := string(golden.File(t, st, unitDir+Timer).Content.Data()); !strings.Contains(text, "\nOnUnitActiveSec=15s\n") {
		t.Error(text)
	}
	s.Address = netip.Addr{}
	st = golden.State(t, Resources(s))
	if b, ok := st.Lookup(desired.BlockID(File, Block)).(*desired.Block); !ok || !strings.HasPrefix(b.Lines, "# ") || Address(b.Lines).IsValid() {
		t.Errorf("without an address: %+v", b)
	}
}

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"10.224.0.4": "10.224.0.4", " 10.224.0.4\n": "10.224.0.4", "10.224.0.4 " + name: "10.224.0.4", "fd00::4": "fd00::4", "::ffff:10.0.0.4": "10.0.0.4",
		"": "", "0.0.0.0": "", "fe80::1%eth0": "", "224.0.0.1": "", name: "", "10.0.0": "",
	} {
		got := ""
		if a := Address(text); a.IsValid() {
			got = a.String()
		}
		if got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestApplies(t *testing.T) {
	if !Applies(name) || Applies("c-1.hcp.westeurope.azmk8s.io") || Applies("10.0.0.4") {
		t.Error("another name is seen to")
	}
}
