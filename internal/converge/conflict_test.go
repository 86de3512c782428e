package converge_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

func takingOver(h host.Host) *converge.Engine {
	return engine(h, &providers{}, func(o *converge.Options) { o.Fetcher, o.TakeOver = store{}, true })
}

// conflict is what two contracts want of one path.
type conflict struct {
	path         string
	mine, theirs desired.Resource
	drift        func(h *machine)
	// actions are those of who takes over; 0 is one.
	actions int
}

func conflicts(t *testing.T) map[string]conflict {
	withMode := func(m desired.Mode) *desired.File {
		f := managed("/etc/kubernetes/a", "a\n")
		f.Mode = m
		return f
	}
	pair := func(name string) *desired.ServingCertificate {
		return &desired.ServingCertificate{CertFile: "/etc/kubernetes/s.crt", KeyFile: "/etc/kubernetes/s.key", Names: []string{name}}
	}
	unit := func(e desired.Enablement) *desired.Unit {
		return &desired.Unit{Name: "containerd.service", Enablement: e}
	}
	mode := kubelet("1.0.0")
	mode.Files[0].Mode = 0o700
	edit := func(p string) func(h *machine) {
		return func(h *machine) { h.Put(p, "drift\n", 0o600) }
	}
	remove := func(p string) func(h *machine) { return func(h *machine) { must(h.Remove(p)) } }
	one, other := anchor(t, "ca"), anchor(t, "ca")
	return map[string]conflict{
		"block":        {path: "block:" + environment + "#a", mine: lines("a", "A=1\n"), theirs: lines("a", "A=2\n"), drift: func(h *machine) { h.Put(environment, "A=0\n", 0o644) }},
		"keys":         {path: "block:" + environment + "#proxy", mine: keys("P", "1"), theirs: keys("P", "2"), drift: func(h *machine) { h.Put(environment, "A=0\n", 0o644) }},
		"mount":        {path: "mount:/mnt/data", mine: mounted(), theirs: mounted("noexec"), drift: func(h *machine) { must(h.Unmount(tctx, "/mnt/data")) }, actions: 2},
		"trust":        {path: "/usr/local/share/ca-certificates/ca.crt", mine: one, theirs: other, drift: edit("/usr/local/share/ca-certificates/ca.crt"), actions: 2},
		"sysctl":       {path: "sysctl:net.ipv4.ip_forward", mine: forwarding("1"), theirs: forwarding("2"), drift: func(h *machine) { h.Value("/proc/sys/net/ipv4/ip_forward", "0") }},
		"swap":         {path: "swap:" + swapFile, mine: &desired.Swap{Path: swapFile, Bytes: 2 * mib}, theirs: &desired.Swap{Path: swapFile, Bytes: 3 * mib}, drift: remove(swapFile)},
		"nftables":     {path: "nftables:berth", mine: filter(80), theirs: filter(81), drift: func(h *machine) { must(h.DeleteFilterTable(tctx, "berth")) }},
		"sysfs":        {path: "sysfs:" + hugePages, mine: choice("madvise"), theirs: choice("never"), drift: func(h *machine) { must(h.WriteValue(hugePages, []byte("always"))) }},
		"activation":   {path: "unit:containerd.service", mine: started("containerd.service"), theirs: &desired.Unit{Name: "containerd.service", Activation: desired.Stopped}, drift: func(h *machine) { must(h.StopUnit(tctx, "containerd.service")) }},
		"credential":   {path: "credential:" + kubeconfig, mine: certificate("https://a"), theirs: certificate("https://b"), drift: remove(kubeconfig)},
		"content":      {path: "/etc/kubernetes/a", mine: managed("/etc/kubernetes/a", "a\n"), theirs: managed("/etc/kubernetes/a", "b\n"), drift: edit("/etc/kubernetes/a")},
		"mode":         {path: "/etc/kubernetes/a", mine: withMode(0o640), theirs: withMode(0o644), drift: edit("/etc/kubernetes/a")},
		"link":         {path: "/etc/l", mine: &desired.Link{Path: "/etc/l", Target: "a"}, theirs: &desired.Link{Path: "/etc/l", Target: "b"}, drift: remove("/etc/l")},
		"directory":    {path: "/etc/d", mine: &desired.Directory{Path: "/etc/d", Mode: 0o700}, theirs: &desired.Directory{Path: "/etc/d", Mode: 0o755}, drift: remove("/etc/d")},
		"program":      {path: "/opt/bin/kubelet", mine: kubelet("2.0.0"), theirs: kubelet("3.0.0"), drift: remove("/opt/bin/kubelet")},
		"serving pair": {path: "/etc/kubernetes/s.key", mine: pair("n1"), theirs: pair("n2"), drift: remove("/etc/kubernetes/s.key")},
		"enablement":   {path: "unit:containerd.service", mine: unit(desired.Enabled), theirs: unit(desired.Disabled), drift: remove(wants)},
	}
}

func mounted(options ...string) *desired.Mount {
	return &desired.Mount{Source: "tmpfs", Target: "/mnt/data", FSType: "tmpfs", Options: options}
}

func certificate(server string) *desired.ClientCertificate {
	return &desired.ClientCertificate{NodeName: "n1", Server: server, CA: "ca", CAFile: "/etc/kubernetes/certs/ca.crt",
		Token: "abcdef.secret", Kubeconfig: kubeconfig, CertDir: "/var/lib/kubelet/pki", Timeout: time.Minute}
}

func forwarding(value string) *desired.Sysctl {
	return &desired.Sysctl{Key: "net.ipv4.ip_forward", Value: value}
}

// disputed is a machine with what the conflicts are about.
func disputed() *machine {
	h := newTrustingMachine()
	offersHugePages(h)
	allocates(h, 64*mib)
	serves(h)
	h.PutDir("/run/sshd") // the server that runs has it
	h.PutDir("/mnt/data")
	h.Value("/proc/sys/net/bridge/bridge-nf-call-iptables", "0") // a module that was loaded stays
	h.Put(environment, "A=0\n", 0o644)
	return h
}

// What two contracts want differently is refused with both named, before
// anything changes; --take-over moves it, and says so.
func TestConflicts(t *testing.T) {
	for name, c := range conflicts(t) {
		t.Run(name, func(t *testing.T) {
			h := disputed()
			before := others(h)
			if _, err := fetching(h).Apply(t.Context(), sealed(t, c.mine)); err != nil {
				t.Fatal(err)
			}
			theirs := of(desired.OwnerOSC, sealed(t, c.theirs))
			want := h.Tree("/etc", "/opt", "/var/lib/berth")
			p, err := fetching(h).Plan(t.Context(), theirs)
			refused(t, err, c.path, desired.OwnerOSC, desired.OwnerAKS)
			if p == nil || len(p.Actions) != 1 || p.Actions[0].Blocked == "" {
				t.Errorf("the plan is %+v", p)
			}
			_, err = fetching(h).Apply(t.Context(), theirs)
			refused(t, err, c.path, desired.OwnerOSC, desired.OwnerAKS)
			if diff := cmp.Diff(want, h.Tree("/etc", "/opt", "/var/lib/berth")); diff != "" {
				t.Errorf("refused, but %s", diff)
			}
			res, err := takingOver(h).Apply(t.Context(), theirs)
			if err != nil || len(res.Plan.Actions) != max(c.actions, 1) || !strings.HasSuffix(res.Plan.Actions[0].Reason, "; taken over from aks") {
				t.Fatalf("%+v, %v", res.Plan.Actions, err)
			}
			again, err := fetching(h).Apply(t.Context(), theirs)
			if err != nil || !again.Plan.Empty() {
				t.Fatalf("again: %v, %v", verbs(again.Plan), err)
			}
			_, err = fetching(h).Apply(t.Context(), sealed(t, c.mine))
			refused(t, err, c.path, desired.OwnerAKS, desired.OwnerOSC)
			taken := others(h)
			if p := runs(t, h, sealed(t)); len(p.Actions)+len(p.Kept) > 0 {
				t.Errorf("who gave it away removes %v, %q", verbs(p), p.Kept)
			}
			if diff := cmp.Diff(taken, others(h)); diff != "" {
				t.Error(diff)
			}
			runs(t, h, of(desired.OwnerOSC, sealed(t)))
			if diff := cmp.Diff(before, others(h)); diff != "" {
				t.Errorf("after both: %s", diff)
			}
		})
	}
}

func refused(t *testing.T, err error, path string, owner, other desired.Owner) {
	t.Helper()
	e, ok := errors.AsType[*converge.OwnedElsewhereError](err)
	if !ok || e.Path != path || e.Owner != owner || e.Other != other {
		t.Fatalf("error %v", err)
	}
	for _, word := range []string{path, string(owner), string(other), "--take-over"} {
		if !strings.Contains(e.Error()+e.Hint(), word) {
			t.Errorf("%q, %q: no word of %s", e.Error(), e.Hint(), word)
		}
	}
}

// Drift of what two contracts want alike is no conflict: either repairs it.
func TestSharedDrift(t *testing.T) {
	for name, c := range conflicts(t) {
		t.Run(name, func(t *testing.T) {
			h := disputed()
			for _, o := range []desired.Owner{desired.OwnerAKS, desired.OwnerOSC} {
				if _, err := fetching(h).Apply(t.Context(), of(o, sealed(t, c.mine))); err != nil {
					t.Fatal(err)
				}
			}
			want := others(h)
			for _, o := range []desired.Owner{desired.OwnerAKS, desired.OwnerOSC} {
				c.drift(h)
				res, err := fetching(h).Apply(t.Context(), of(o, sealed(t, c.mine)))
				if err != nil || res.Plan.Empty() {
					t.Fatalf("%s: %v, %v", o, verbs(res.Plan), err)
				}
				if diff := cmp.Diff(want, others(h)); diff != "" {
					t.Errorf("%s: %s", o, diff)
				}
			}
		})
	}
}

// A directory that was only made on the way to a file has the mode that the
// first asks for who does.
func TestParentsAreNobodysChoice(t *testing.T) {
	h := newMachine()
	runs(t, h, sealed(t, managed("/etc/kubernetes/a", "a\n")))
	theirs := of(desired.OwnerOSC, sealed(t, &desired.Directory{Path: "/etc/kubernetes", Mode: 0o700}))
	runs(t, h, theirs)
	runs(t, h, sealed(t, managed("/etc/kubernetes/a", "a\n")))
	converged(t, h, theirs)
	_, err := engine(h, &providers{}).Plan(t.Context(), sealed(t, &desired.Directory{Path: "/etc/kubernetes", Mode: 0o711}))
	refused(t, err, "/etc/kubernetes", desired.OwnerAKS, desired.OwnerOSC)
}

func TestChangedHint(t *testing.T) {
	if h, ok := converge.ErrChanged.(interface{ Hint() string }); !ok || h.Hint() == "" {
		t.Error("no hint")
	}
}
