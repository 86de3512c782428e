package converge_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// listing counts how often directories are listed.
type listing struct {
	host.Host
	times map[string]int
}

func (l *listing) ReadDir(p string) ([]string, error) {
	l.times[p]++
	return l.Host.ReadDir(p)
}

// However many units there are, and whoever asks what they consist of, one run with
// nothing to do lists each directory of systemd's once, and none that is not there.
func TestDirectoriesAreListedOnce(t *testing.T) {
	const unitDir = "/etc/systemd/system"
	h := newMachine()
	h.Put("/usr/lib/systemd/system/service.d/10-all.conf", "[Service]\nEnvironment=A=1\n", 0o644)
	var rs []desired.Resource
	for i := range 20 {
		name := fmt.Sprintf("a-b-%02d.service", i)
		rs = append(rs, managed(unitDir+"/"+name, kubeletUnit),
			&desired.Unit{Name: name, Enablement: desired.Enabled, Activation: desired.Started})
	}
	rs = append(rs, managed(unitDir+"/a-b-03.service.d/10-own.conf", "[Service]\nEnvironment=B=1\n"))
	st := sealed(t, rs...)
	runs(t, h, st)
	l := &listing{h, map[string]int{}}
	if plan := runs(t, l, st); !plan.Empty() {
		t.Fatalf("plan %v", verbs(plan))
	}
	listed := map[string]int{}
	for p, n := range l.times {
		if strings.Contains(p, "/systemd/system") {
			listed[p] = n
		}
	}
	want := map[string]int{unitDir: 1, "/run/systemd/system": 1, "/usr/local/lib/systemd/system": 1, "/usr/lib/systemd/system": 1,
		"/usr/lib/systemd/system/service.d": 1, unitDir + "/a-b-03.service.d": 1}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Error(diff)
	}
}

// Drop-ins count also where the directory above theirs is a link, which is listed by
// nobody.
func TestDropInsBelowALink(t *testing.T) {
	h := newMachine()
	h.PutLink("/opt/units", "/usr/local/lib/systemd/system", 0)
	h.Put("/opt/units/containerd.service.d/10-install.conf", "[Install]\nRequiredBy=kubelet.service\n", 0o644)
	plan, err := engineOffline(h, &providers{}).Plan(t.Context(), sealed(t, &desired.Unit{Name: "containerd.service", Enablement: desired.Enabled}))
	must(err)
	const link = "/etc/systemd/system/kubelet.service.requires/containerd.service"
	if !slices.ContainsFunc(plan.Actions, func(a converge.Action) bool { return strings.Contains(a.Reason, link) }) {
		t.Errorf("plan %+v", plan.Actions)
	}
}

// looking is a kind that lists a directory in the plan and when changes have begun.
type looking struct {
	naming
	seen [][]string
}

func (k *looking) Observe(_ context.Context, v *kind.View, t *kind.Task, _ desired.Resource) error {
	look := func() error {
		names, err := v.Listed("/d")
		k.seen = append(k.seen, names)
		return err
	}
	must(look())
	must(v.Host.Remove("/d/a"))
	must(look())
	t.Act(kind.VerbSet, "to see", kind.DisruptNone)
	t.Stage = func(context.Context, *kind.Task) error { return look() }
	return nil
}

func (k *looking) Names(*kind.View, desired.Resource) []string { return nil }

func (k *looking) Remove(context.Context, *kind.View, *kind.Task, string, ledger.Entry) error {
	return nil
}

// What a plan knows of directories is not what holds when its changes begin.
func TestListedAnewWhenChangesBegin(t *testing.T) {
	h := newMachine()
	h.Put("/d/a", "", 0o644)
	h.Put("/d/b", "", 0o644)
	k := &looking{}
	_, err := engine(h, &providers{}, func(o *converge.Options) { o.Kinds = []kind.Kind{k} }).Apply(t.Context(), sealed(t, &hostname{value: "n"}))
	must(err)
	if diff := cmp.Diff([][]string{{"a", "b"}, {"a", "b"}, {"b"}}, k.seen); diff != "" {
		t.Error(diff)
	}
}
