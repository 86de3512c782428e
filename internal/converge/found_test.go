package converge_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host"
)

func foundOn(t *testing.T, h host.Host) map[string]ledger.Found {
	t.Helper()
	l, err := new(ledger.Reader).Load(h)
	if err != nil {
		t.Fatal(err)
	}
	return l.Found
}

// What others had on the machine before berth is noted once; when nobody can know any
// more, nothing is.
func TestWhatWasFound(t *testing.T) {
	h := newMachine()
	h.PutDir("/var/lib/kubelet")
	h.Put("/var/lib/kubelet/pki/key", "k", 0o600)
	h.Put("/etc/a", "theirs", 0o644)
	mount := func(target string) {
		h.PutDir(target)
		if err := h.Mount(t.Context(), host.Mount{Source: "tmpfs", Target: target, Type: "tmpfs"}); err != nil {
			t.Fatal(err)
		}
	}
	mount("/run/netns/cni-theirs")
	mount("/srv")
	h.PutFilterNames(host.FilterName{Family: "ip", Table: "nat", Chain: "CNI-theirs"}, host.FilterName{Family: "ip", Table: "nat"})
	h.PutTable(theirs)
	e := engine(h, &providers{})
	if _, err := e.Apply(t.Context(), sealed(t, managed("/etc/a", "a\n"))); err != nil {
		t.Fatal(err)
	}
	found := foundOn(t, h)
	if diff := cmp.Diff([]string{"pki"}, found["/var/lib/kubelet"].Names); diff != "" || !found["/var/lib/kubelet"].Mode.IsDir() {
		t.Errorf("%s %+v", diff, found)
	}
	if diff := cmp.Diff(ledger.Found{Names: []string{"/run/netns/cni-theirs"}}, found[ledger.MountsFound]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(ledger.Found{Names: []string{"inet theirs", "inet theirs c", "ip nat", "ip nat CNI-theirs"}}, found[ledger.FilterFound]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(ledger.Found{}, found["/var/lib/cni"]); diff != "" {
		t.Errorf("what was not there: %s", diff)
	}
	h.Put("/var/lib/kubelet/cpu_manager_state", "", 0o600)
	h.Put("/var/lib/cni/results/r", "", 0o600)
	mount("/run/netns/cni-pod")
	h.PutFilterNames(host.FilterName{Family: "ip", Table: "nat", Chain: "CNI-pod"})
	if _, err := e.Apply(t.Context(), sealed(t, managed("/etc/a", "b\n"), managed("/etc/b", "b\n"))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(found, foundOn(t, h)); diff != "" {
		t.Errorf("a later run found something else: %s", diff)
	}
	if err := h.Remove("/var/lib/berth/ledger.json"); err != nil {
		t.Fatal(err)
	}
	if _, err := engine(h, &providers{}).Apply(t.Context(), sealed(t, managed("/etc/a", "c\n"))); err != nil {
		t.Fatal(err)
	}
	if found := foundOn(t, h); found != nil {
		t.Errorf("after the ledger was lost: %+v", found)
	}
}
