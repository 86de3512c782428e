package localdns

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

func sample() Settings {
	busy := Zone{Log: "Error", Policy: "random", MaxConcurrent: 1000, Seconds: 3600, Stale: 3600, StaleMode: "Immediate", FailFast: true,
		Health: Health{Duration: "1s", NoRecursion: true, Domain: "mcr.example"}}
	cluster := Zone{Log: "Log", TCP: true, Cluster: true, Policy: "round_robin", Seconds: 60, Stale: 30, StaleMode: "Verify"}
	return Settings{
		Node: map[string]Zone{".": busy, "cluster.local": cluster}, Pods: map[string]Zone{".": cluster, "corp.example": {Policy: "sequential"}},
		ClusterDNS: "10.0.0.10", MilliCPU: 1500, MegaBytes: 200, Hosts: true, Names: []string{"mcr.example", "100%.example"},
		Refresh: 30, Berth: "/usr/bin/berth",
	}
}

func TestResources(t *testing.T) {
	st := golden.State(t, Resources(sample()))
	golden.Check(t, "corefile", string(golden.File(t, st, Corefile).Content.Data()))
	for _, name := range []string{Unit, Slice, HostsUnit, HostsTimer} {
		golden.Check(t, name, string(golden.File(t, st, unitDir+name).Content.Data()))
	}
	u := st.Lookup(desired.UnitID(Unit)).(*desired.Unit)
	if !slices.Contains(u.After, desired.ArtifactID("localdns")) || !slices.Contains(u.Triggers, Corefile) {
		t.Errorf("the service starts after %v, again with %v", u.After, u.Triggers)
	}
}

// What the service does before and after restarts systemd-resolved: a stop that has to
// be over before systemd-resolved's would wait for itself.
func TestStopDoesNotWaitForItself(t *testing.T) {
	if text := sample().service(); strings.Contains(text, "systemd-resolved") {
		t.Errorf("the service is ordered after the resolver:\n%s", text)
	}
}

// Pods have no other name server: five ends for want of memory are not the last.
func TestStartsWithoutEnd(t *testing.T) {
	if text := sample().service(); !strings.Contains(text, "\nStartLimitIntervalSec=0\n") {
		t.Errorf("systemd gives up:\n%s", text)
	}
}

// A name is one argument, whatever stands in it: it says nothing to systemd, and is no
// flag.
func TestWordsOfNames(t *testing.T) {
	s := Settings{Names: []string{"a.example", "-x", "a b", "$HOME", "a\nExecStart=/bin/sh", "a\x00b", `"\`, "100%", ";"}}
	want := []string{"--", "a.example", "-x", `"a b"`, `"$$HOME"`, `"a\u000aExecStart=/bin/sh"`, `"a?b"`, `"\"\\"`, `"100%%"`, `";"`}
	if diff := cmp.Diff(want, s.words()); diff != "" {
		t.Error(diff)
	}
}

// Without names to look up there is neither a file nor a timer for them.
func TestWithoutHosts(t *testing.T) {
	s := sample()
	s.Hosts = false
	st := golden.State(t, Resources(s))
	if st.Lookup(desired.UnitID(HostsTimer)) != nil {
		t.Error("there is a timer")
	}
	for _, path := range []string{Corefile, unitDir + Unit} {
		if text := string(golden.File(t, st, path).Content.Data()); strings.Contains(text, "hosts") {
			t.Errorf("%s names the file:\n%s", path, text)
		}
	}
	golden.Check(t, "corefile-without-hosts", string(golden.File(t, st, Corefile).Content.Data()))
}

// The machine's own servers take the place of Azure's where names are forwarded, and
// nowhere else.
func TestWithUpstream(t *testing.T) {
	servers := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}
	got := WithUpstream(sample().text(), servers)
	if n := strings.Count(got, "forward . 192.0.2.1 2001:db8::1 {"); n != 2 || strings.Contains(got, AzureDNS) || !strings.Contains(got, "forward . 10.0.0.10 {") {
		t.Errorf("%d times:\n%s", n, got)
	}
}

func TestReadyURLs(t *testing.T) {
	s := sample()
	if diff := cmp.Diff([]string{"http://169.254.10.10:8181/ready", "http://169.254.10.11:8181/ready"}, ReadyURLs(s.text())); diff != "" {
		t.Error(diff)
	}
	s.Node, s.Pods = nil, nil
	if urls := ReadyURLs(s.text()); urls != nil {
		t.Errorf("nobody tells: %v", urls)
	}
}

func TestHosts(t *testing.T) {
	entries := []Entry{{"a.example", []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}}, {Name: "b.example"}}
	text := HostsText(entries)
	for _, e := range entries {
		if got := ReadHosts(text, e.Name); !slices.Equal(got, e.Addresses) {
			t.Errorf("%s: %v", e.Name, got)
		}
	}
	if got := ReadHosts("x a\n192.0.2.9 # a\n192.0.2.8 b a # c\n192.0.2.7\n", "a"); !slices.Equal(got, []netip.Addr{netip.MustParseAddr("192.0.2.8")}) {
		t.Error(got)
	}
}

// What is read of a file is written as it was read.
func FuzzReadHosts(f *testing.F) {
	f.Add("192.0.2.1 a\n2001:db8::1 a b#c\n", "a")
	f.Add("fe80::1%eth0 a", "a")
	f.Fuzz(func(t *testing.T, text, name string) {
		read := ReadHosts(text, name)
		if len(read) == 0 {
			return
		}
		if again := ReadHosts(HostsText([]Entry{{name, read}}), name); !slices.Equal(again, read) {
			t.Errorf("%q: %v, then %v", text, read, again)
		}
	})
}
