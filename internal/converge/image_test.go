package converge_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// runtime is a container runtime that has images.
type runtime struct {
	has map[string]string
	err error
}

func (r *runtime) Lacks(_ context.Context, i *desired.Image) (string, error) {
	if r.has[i.Reference] != i.Digest {
		return "absent", nil
	}
	return "", nil
}

func (r *runtime) Import(_ context.Context, i *desired.Image) (converge.Staged, error) {
	if r.err == nil {
		r.has[i.Reference] = i.Digest
	}
	return converge.Staged{URL: i.Source, Unverified: i.Source != ""}, r.err
}

func TestImages(t *testing.T) {
	st := &desired.State{Owner: desired.OwnerAKS}
	st.Add(&desired.Image{Reference: "registry.example/pause:3.10", Digest: "sha256:aa"})
	if err := st.Seal(); err != nil {
		t.Fatal(err)
	}
	m := memory.New()
	r := &runtime{has: map[string]string{}, err: errors.New("no room")}
	e := converge.New(converge.Options{Host: m, Providers: converge.Providers{Images: r}})
	plan, err := e.Plan(t.Context(), st)
	if err != nil || len(plan.Actions) != 1 || plan.Actions[0].Verb != converge.VerbImport || plan.Actions[0].Reason != "absent" {
		t.Fatalf("got %+v, %v", plan, err)
	}
	if _, err := e.Apply(t.Context(), st); !errors.Is(err, r.err) {
		t.Errorf("got %v", err)
	}
	r.err = nil
	if _, err := e.Apply(t.Context(), st); err != nil || r.has["registry.example/pause:3.10"] != "sha256:aa" {
		t.Errorf("got %v, %v", r.has, err)
	}
	if plan, err := e.Plan(t.Context(), st); err != nil || !plan.Empty() {
		t.Errorf("second plan %+v, %v", plan, err)
	}
	st = &desired.State{Owner: desired.OwnerAKS}
	st.Add(&desired.Image{Reference: "registry.example/other:1", Source: "oci://mirror.example/other:1"})
	if err := st.Seal(); err != nil {
		t.Fatal(err)
	}
	r.has["registry.example/other:1"] = "another"
	res, err := e.Apply(t.Context(), st)
	if want := []string{"image:registry.example/other:1 from oci://mirror.example/other:1"}; err != nil || !slices.Equal(res.Unverified, want) {
		t.Errorf("unverified %q, %v; want %q", res.Unverified, err, want)
	}
	offline := converge.New(converge.Options{Host: m, Providers: converge.Providers{Images: r}, Offline: true})
	if plan, err := offline.Plan(t.Context(), st); err != nil || !plan.Empty() || len(plan.Deferred) != 1 {
		t.Errorf("offline plan %+v, %v", plan, err)
	}
	if _, err := converge.New(converge.Options{Host: m}).Plan(t.Context(), st); err == nil {
		t.Error("planned without a provider")
	}
	// What the state no longer names is the runtime's own to remove.
	none := &desired.State{Owner: desired.OwnerAKS}
	if err := none.Seal(); err != nil {
		t.Fatal(err)
	}
	if plan, err := e.Plan(t.Context(), none); err != nil || !plan.Empty() {
		t.Errorf("plan without the image %+v, %v", plan, err)
	}
}

// An image that the machine does without fails no run, and is asked for by the next.
func TestOptionalImage(t *testing.T) {
	st := &desired.State{Owner: desired.OwnerAKS}
	st.Add(&desired.Image{Reference: "registry.example/proxy:1", Source: "oci://mirror.example/proxy:1", Optional: true})
	if err := st.Seal(); err != nil {
		t.Fatal(err)
	}
	r := &runtime{has: map[string]string{"registry.example/proxy:1": "another"}, err: errors.New("no such host")}
	e := converge.New(converge.Options{Host: memory.New(), Providers: converge.Providers{Images: r}})
	res, err := e.Apply(t.Context(), st)
	if err != nil || !slices.ContainsFunc(res.Plan.Remarks, func(s string) bool {
		return strings.Contains(s, "registry.example/proxy:1") && strings.Contains(s, "no such host")
	}) {
		t.Errorf("%v, %+v", err, res.Plan.Remarks)
	}
	if plan, err := e.Plan(t.Context(), st); err != nil || plan.Empty() {
		t.Errorf("second plan %+v, %v", plan, err)
	}
	r.err = nil
	if _, err := e.Apply(t.Context(), st); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	r.has["registry.example/proxy:1"], r.err = "another", errors.New("cut off")
	cancel(errors.New("told to stop"))
	if _, err := e.Apply(ctx, st); err == nil {
		t.Error("a run that is told to stop succeeds")
	}
}

// silent is a registry that takes the question and does not answer.
type silent struct{ runtime }

func (*silent) Import(ctx context.Context, _ *desired.Image) (converge.Staged, error) {
	<-ctx.Done()
	return converge.Staged{}, context.Cause(ctx)
}

// A registry that does not answer keeps a run no longer than 10 seconds for an image that
// the machine does without.
func TestOptionalImageThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &desired.State{Owner: desired.OwnerAKS}
		st.Add(&desired.Image{Reference: "registry.example/proxy:1", Source: "oci://mirror.example/proxy:1", Optional: true})
		if err := st.Seal(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		e := converge.New(converge.Options{Host: memory.New(), Providers: converge.Providers{Images: &silent{runtime{has: map[string]string{"registry.example/proxy:1": "another"}}}}})
		res, err := e.Apply(t.Context(), st)
		if err != nil || len(res.Plan.Remarks) != 1 {
			t.Errorf("%v, %+v", err, res.Plan.Remarks)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// Two owners share an image under one digest; under another the second is refused by name,
// since each of its runs would take the other's away.
func TestImageOfTwoOwners(t *testing.T) {
	const ref = "registry.example/pause:3.10"
	h, r := memory.New(), &runtime{has: map[string]string{}}
	apply := func(o desired.Owner, takeOver bool, images ...desired.Resource) error {
		t.Helper()
		st := &desired.State{Owner: o}
		st.Add(images...)
		if err := st.Seal(); err != nil {
			t.Fatal(err)
		}
		e := converge.New(converge.Options{Host: h, Providers: converge.Providers{Images: r}, TakeOver: takeOver})
		if _, err := e.Apply(t.Context(), st); err != nil {
			return err
		}
		if plan, err := e.Plan(t.Context(), st); err != nil || !plan.Empty() {
			t.Errorf("then there is %+v, %v", plan, err)
		}
		return nil
	}
	image := func(digest string) desired.Resource {
		return &desired.Image{Reference: ref, Digest: digest, Source: "oci://mirror.example/pause:3.10"}
	}
	must(apply(desired.OwnerAKS, false, image("sha256:aa")))
	must(apply(desired.OwnerOSC, false, image("sha256:aa")))
	if err := apply(desired.OwnerOSC, false, image("sha256:bb")); err == nil ||
		!strings.Contains(err.Error(), "image:"+ref+" belongs to the aks contract") || r.has[ref] != "sha256:aa" {
		t.Errorf("another digest: %v, %v", err, r.has)
	}
	must(apply(desired.OwnerOSC, true, image("sha256:bb")))
	if r.has[ref] != "sha256:bb" {
		t.Errorf("taken over: %v", r.has)
	}
	must(apply(desired.OwnerOSC, false))
	must(apply(desired.OwnerAKS, false, image("sha256:aa")))
	if r.has[ref] != "sha256:aa" {
		t.Errorf("free again: %v", r.has)
	}
}
