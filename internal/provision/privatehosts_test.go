package provision

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/hostsagent"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

const privateName = "c.privatelink.westeurope.azmk8s.io"

func says(text string) func(context.Context) netip.Addr {
	return func(context.Context) netip.Addr { return hostsagent.Address(text) }
}

// followed is a machine that follows the tag.
func followed() *memory.Host {
	h := memory.New()
	h.Put(hostsagent.UnitFile, "[Service]\n", 0o644)
	return h
}

// The address follows the tag; what others wrote stays, after it.
func TestKeepPrivateHost(t *testing.T) {
	const others = "127.0.0.1 localhost\n192.0.2.1 " + privateName + "\n"
	h := followed()
	h.PutDir("/run/berth")
	h.Put(hostsagent.File, others, 0o640)
	const label = "system_u:object_r:net_conf_t:s0\x00"
	if err := h.SetXattr(hostsagent.File, "security.selinux", []byte(label)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tag     string
		changes bool
		want    string
	}{
		{"", false, ""}, {"10.224.0.4", true, "10.224.0.4"}, {"10.224.0.4", false, "10.224.0.4"},
		{"10.224.0.5", true, "10.224.0.5"}, {"", false, "10.224.0.5"}, {"nonsense", false, "10.224.0.5"},
	} {
		changed, err := KeepPrivateHost(t.Context(), h, privateName, says(c.tag))
		b, _ := h.ReadFile(hostsagent.File)
		text := string(b)
		if err != nil || changed != c.changes || !strings.HasSuffix(text, others) || strings.Count(text, privateName) > 2 {
			t.Errorf("%q: changed %v, %v\n%s", c.tag, changed, err, text)
		}
		if got := apiServerBefore(h); got.IsValid() != (c.want != "") || c.want != "" && got.String() != c.want {
			t.Errorf("%q: the next run finds %v", c.tag, got)
		}
		if c.want != "" && !strings.HasPrefix(text, "# BEGIN berth api-server\n"+c.want+" "+privateName+"\n# END berth api-server\n") {
			t.Errorf("%q: not what is looked at first:\n%s", c.tag, text)
		}
	}
	if info, err := h.Lstat(hostsagent.File); err != nil || info.Mode.Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode, err)
	}
	if x, err := h.Xattrs(hostsagent.File); err != nil || string(x["security.selinux"]) != label {
		t.Errorf("label %q, %v", x, err)
	}
}

// After a boot nothing of berth has run yet, and nothing is in /run.
func TestKeepPrivateHostAfterABoot(t *testing.T) {
	h := followed()
	h.Boot()
	if changed, err := KeepPrivateHost(t.Context(), h, privateName, says("10.224.0.4")); !changed || err != nil {
		t.Errorf("changed %v, %v", changed, err)
	}
}

// Who has left while the tag was asked for has nothing written.
func TestKeepPrivateHostAfterLeaving(t *testing.T) {
	h := memory.New()
	h.Put(hostsagent.File, "127.0.0.1 localhost\n", 0o644)
	changed, err := KeepPrivateHost(t.Context(), h, privateName, says("10.224.0.4"))
	if b, _ := h.ReadFile(hostsagent.File); changed || err != nil || string(b) != "127.0.0.1 localhost\n" {
		t.Errorf("changed %v, %v\n%s", changed, err, b)
	}
}

// A run that has the machine writes the address itself.
func TestKeepPrivateHostYields(t *testing.T) {
	h := followed()
	h.PutDir("/run/berth")
	unlock, err := h.Lock(t.Context(), ledger.LockPath, "a run")
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := KeepPrivateHost(t.Context(), h, privateName, says("10.224.0.4")); changed || err != nil {
		t.Errorf("changed %v, %v", changed, err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if changed, err := KeepPrivateHost(t.Context(), h, privateName, says("10.224.0.4")); !changed || err != nil {
		t.Errorf("a machine without the file: changed %v, %v", changed, err)
	}
}

// hosted is a run of an engine for the agent of private hosts, or for nothing.
func hosted(t *testing.T, e *converge.Engine, rs ...desired.Resource) *converge.Plan {
	t.Helper()
	st := &desired.State{Owner: desired.OwnerAKS}
	st.Add(rs...)
	if err := st.Seal(); err != nil {
		t.Fatal(err)
	}
	res, err := e.Apply(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	return res.Plan
}

// The configuration in force has the address that the file has: neither a run that goes back
// to it nor the agent goes back to another one. What is there can't be noted in stays as it
// is, and the machine has the address.
func TestKeepPrivateHostNotesTheAddress(t *testing.T) {
	h := followed()
	h.PutDir("/run/berth")
	good := func(facts string) {
		t.Helper()
		if err := trial.Keep(h, desired.OwnerAKS, &trial.Contract{Document: []byte("d"), Facts: json.RawMessage(facts)}); err != nil {
			t.Fatal(err)
		}
	}
	good(`{"Hostname":"n","APIServer":"10.224.0.3"}`)
	if changed, err := KeepPrivateHost(t.Context(), h, privateName, says("10.224.0.4")); !changed || err != nil {
		t.Fatalf("changed %v, %v", changed, err)
	}
	kept, err := trial.Good(h, desired.OwnerAKS)
	if err != nil {
		t.Fatal(err)
	}
	var facts component.Facts
	if err := json.Unmarshal(kept.Facts, &facts); err != nil || facts.APIServer.String() != "10.224.0.4" || facts.Hostname != "n" || string(kept.Document) != "d" {
		t.Errorf("%s, %+v: %v", kept.Document, facts, err)
	}
	good(`[]`)
	if changed, err := KeepPrivateHost(t.Context(), h, privateName, says("10.224.0.5")); !changed || err == nil {
		t.Errorf("changed %v, %v", changed, err)
	}
	if got := apiServerBefore(h); got.String() != "10.224.0.5" {
		t.Errorf("the machine has %s", got)
	}
}

// A tag may be there only after the run: another run plans nothing, and without the agent,
// whether there was another run or not, the file is what it was.
func TestPrivateHostGoes(t *testing.T) {
	const others = "127.0.0.1 localhost\n"
	for _, again := range []bool{false, true} {
		h := memory.New()
		h.Put(hostsagent.File, others, 0o644)
		h.Program("/usr/bin/berth", func(host.Command) host.Output { return host.Output{} })
		e := converge.New(converge.Options{Host: h})
		agent := func() []desired.Resource {
			return hostsagent.Resources(hostsagent.Settings{Name: privateName, Address: apiServerBefore(h), Program: "/usr/bin/berth"})
		}
		hosted(t, e, agent()...)
		if p := hosted(t, e, agent()...); len(p.Actions) > 0 {
			t.Errorf("a second run without an address: %v", p.Actions)
		}
		for _, address := range []string{"10.224.0.4", "10.224.0.5"} {
			if changed, err := KeepPrivateHost(t.Context(), h, privateName, says(address)); !changed || err != nil {
				t.Fatalf("changed %v, %v", changed, err)
			}
			if !again {
				continue
			}
			if p := hosted(t, e, agent()...); len(p.Actions) > 0 {
				t.Errorf("a second run: %v", p.Actions)
			}
		}
		hosted(t, e)
		if b, err := h.ReadFile(hostsagent.File); err != nil || string(b) != others {
			t.Errorf("another run %v: %v, left:\n%s", again, err, b)
		}
	}
}
