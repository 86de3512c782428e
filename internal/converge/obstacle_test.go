package converge_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An empty directory in place of berth's file is repaired; one with entries, or
// where berth never was, is refused before anything changes.
func TestDirectoryInTheWay(t *testing.T) {
	const file = "/etc/default/kubelet"
	p, h := applied(t)
	want := h.Tree("/etc")
	must(h.Remove(file))
	h.PutDir(file)
	if _, err := engine(h, p).Apply(t.Context(), sampleState(t)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, h.Tree("/etc")); diff != "" {
		t.Fatal(diff)
	}
	must(h.Remove(file))
	h.Put(file+"/precious", "", 0o600)
	virgin := newMachine()
	virgin.PutDir(file)
	for name, h := range map[string]*machine{"with entries": h, "foreign": virgin} {
		before := h.Tree("/etc", "/var/lib/kubelet")
		_, err := engine(h, p).Apply(t.Context(), sampleState(t))
		if err == nil || !strings.Contains(err.Error(), file+": there is a directory already") {
			t.Errorf("%s: error %v", name, err)
		}
		if diff := cmp.Diff(before, h.Tree("/etc", "/var/lib/kubelet")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A credential that others may read is narrowed in place, without a new one.
func TestCredentialAttributes(t *testing.T) {
	p, h := applied(t)
	pair := "/var/lib/kubelet/pki/kubelet-client-berth.pem"
	want := h.Tree("/var/lib/kubelet")
	must(h.Chmod(pair, 0o644))
	must(h.Chown(kubeconfig, 7, 7))
	plan, err := engine(h, p).Plan(t.Context(), sampleState(t))
	if err != nil {
		t.Fatal(err)
	}
	id := "update credential:" + kubeconfig
	if diff := cmp.Diff([]string{id, id}, verbs(plan)); diff != "" {
		t.Fatal(diff)
	}
	if _, err := engine(h, p).Apply(t.Context(), sampleState(t)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, h.Tree("/var/lib/kubelet")); diff != "" || joinJobs(h) != "" {
		t.Fatal(diff, joinJobs(h))
	}
}
