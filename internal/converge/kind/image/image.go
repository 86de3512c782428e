// Package image is the kind of container images of the machine's runtime.
package image

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
)

// Kind is the kind of images.
type Kind struct{}

var _ kind.Remover = Kind{}

// Name implements kind.Kind.
func (Kind) Name() string { return "image" }

// Pass implements kind.Kind.
func (Kind) Pass() kind.Pass { return kind.Tree }

// Names implements kind.Kind.
func (Kind) Names(_ *kind.View, r desired.Resource) []string { return []string{string(r.ID())} }

// Observe implements kind.Kind. Images are imported while the units start: a pod
// that comes before its image waits for it, as for a pull. Before that there is no
// runtime.
func (Kind) Observe(ctx context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	i := r.(*desired.Image)
	if v.Offline {
		t.Postpone(kind.VerbImport, "imported on first boot")
		return nil
	}
	if v.Booting {
		return nil
	}
	if v.Images == nil {
		return kind.ErrNoProvider
	}
	reason, err := v.Images.Lacks(ctx, i)
	if err != nil {
		return err
	}
	was := "present"
	if reason != "" {
		was = "absent"
		t.Act(kind.VerbImport, reason, kind.DisruptNone)
		t.Live = func(ctx context.Context) error { return bring(ctx, v, t, i) }
		if i.Optional {
			tryOnly(t, i)
		}
	}
	return v.ClaimLive(t, string(i.ID()), cmp.Or(i.Digest, anyDigest), was, agree)
}

// anyDigest is what an owner asks for that names none.
const anyDigest = "any"

// agree: a reference names one image at a time.
func agree(a, b string) bool { return a == b || a == anyDigest || b == anyDigest }

// Remove implements kind.Remover: an image is the runtime's once it is there.
func (Kind) Remove(context.Context, *kind.View, *kind.Task, string, ledger.Entry) error { return nil }

func bring(ctx context.Context, v *kind.View, t *kind.Task, i *desired.Image) error {
	got, err := v.Images.Import(ctx, i)
	if err == nil && got.URL != "" {
		t.Fetched = &got
		kind.Detail(ctx, "from "+got.URL, got.Bytes)
	}
	return err
}

// patience is for an image that the machine does without: a registry that answers sends one
// in that time, and of one that does not the run should not be the later. Pods that
// need the image pull it as well.
const patience = 10 * time.Second

// tryOnly makes a task's failure a remark, unless the run itself ends.
func tryOnly(t *kind.Task, i *desired.Image) {
	var missed error
	whole := t.Live
	t.Live = func(ctx context.Context) error {
		bounded, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		missed = whole(bounded)
		return ctx.Err()
	}
	t.Last = func(_ context.Context, t *kind.Task) error {
		if missed != nil {
			t.Remarks = append(t.Remarks, fmt.Sprintf("image %s did not come, its pods will pull it: %v", i.Reference, missed))
		}
		return nil
	}
}
