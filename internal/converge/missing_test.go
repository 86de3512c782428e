package converge_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
)

// What the document has no address for is missing: the plan shows it among the
// rest, and apply fails before anything changes, for all that is missing at once.
func TestMissingArtifacts(t *testing.T) {
	lacks := func(name string) *desired.Artifact {
		return &desired.Artifact{Name: name, Base: desired.Base{Field: name + "_config"}, Files: []desired.ArtifactFile{{Path: "/opt/bin/" + name, Mode: 0o755}}}
	}
	h := newMachine()
	s := sealed(t, managed("/etc/a", "a\n"), lacks("crictl"), lacks("runc"), started("containerd.service"))
	plan, err := engine(h, &providers{}).Plan(t.Context(), s)
	missing, ok := errors.AsType[*converge.MissingError](err)
	if !ok || missing.Artifact.Name != "crictl" || !strings.Contains(err.Error(), "runc") {
		t.Fatalf("plan: error %v", err)
	}
	want := []string{"fetch artifact:crictl", "fetch artifact:runc", "create file:/etc/a", "start unit:containerd.service"}
	if diff := cmp.Diff(want, verbs(plan)); diff != "" {
		t.Error(diff)
	}
	if a := plan.Actions[0]; a.Blocked != "the document names no address to fetch it from" || a.Reason != "absent: /opt/bin/crictl" || a.Field != "crictl_config" {
		t.Errorf("%+v", a)
	}
	before := h.Tree()
	res, err := engine(h, &providers{}).Apply(t.Context(), s)
	act, ok := errors.AsType[*converge.ActionError](err)
	if !ok || act.ID != "artifact:crictl" || act.Field != "crictl_config" || !errors.As(err, &missing) {
		t.Fatalf("apply: error %v", err)
	}
	if diff := cmp.Diff(want, verbs(res.Plan)); diff != "" {
		t.Error(diff)
	}
	after := h.Tree()
	for _, own := range []string{"/run/berth", "/run/berth/lock"} {
		delete(after, own)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the machine was changed: %s", diff)
	}
}

// Under a root directory nothing says that the first boot could fetch it.
func TestMissingArtifactsOfARoot(t *testing.T) {
	s := sealed(t,
		&desired.Artifact{Name: "a", Files: []desired.ArtifactFile{{Path: "/opt/a", Mode: 0o755}}},
		&desired.Artifact{Name: "b", URLs: []string{"https://example.com/b"}, Files: []desired.ArtifactFile{{Path: "/opt/b", Mode: 0o755}}})
	plan, err := engine(newMachine(), &providers{}, func(o *converge.Options) { o.Offline, o.NoFetch = true, true }).Plan(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range plan.Deferred {
		got = append(got, a.Reason)
	}
	want := []string{"absent: /opt/a; must be in the image: the document names no address", "absent: /opt/b; fetched on first boot"}
	if !slices.Equal(got, want) {
		t.Errorf("deferred %q", got)
	}
}
