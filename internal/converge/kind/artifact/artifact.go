// Package artifact is the kind of downloads: sets of files, usually programs.
package artifact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// MissingError is an artifact that is neither on the machine nor to be had from
// anywhere that the contract names.
type MissingError struct {
	Artifact *desired.Artifact
	Reason   string
}

// Error says what is missing and why it can't be fetched.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%s: %s, and the configuration names no address to fetch it from", e.Artifact.Name, e.Reason)
}

// Kind is the kind of artifacts.
type Kind struct{}

var _ kind.Downloader = Kind{}

// Name implements kind.Kind.
func (Kind) Name() string { return "artifact" }

// Pass implements kind.Kind.
func (Kind) Pass() kind.Pass { return kind.Tree }

// Names implements kind.Kind.
func (Kind) Names(v *kind.View, r desired.Resource) []string {
	var out []string
	for _, f := range r.(*desired.Artifact).Files {
		out = append(out, v.Real(f.Path))
	}
	return out
}

// Downloads implements kind.Downloader.
func (k Kind) Downloads(v *kind.View, r desired.Resource) []string { return k.Names(v, r) }

// Asked implements kind.Asker. URLs may carry secrets: only their sum is
// remembered.
func (Kind) Asked(r desired.Resource) string {
	a := r.(*desired.Artifact)
	return cmp.Or(a.Image, a.Version, a.SHA256, desired.Text(strings.Join(a.URLs, "\n")).Sum())
}

// Observe implements kind.Kind.
func (k Kind) Observe(ctx context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	a := r.(*desired.Artifact)
	reason, err := k.lacking(ctx, v, a)
	if err != nil {
		return err
	}
	if reason == "" {
		return k.modes(v, t, a)
	}
	nowhere := len(a.Addresses()) == 0 && !has(v, a)
	switch {
	case v.NoFetch && nowhere:
		t.Postpone(kind.VerbFetch, reason+"; must be in the image: the document names no address")
		return nil
	case v.NoFetch:
		t.Postpone(kind.VerbFetch, reason+"; fetched on first boot")
		return nil
	case nowhere:
		t.Block(kind.VerbFetch, reason, "the document names no address to fetch it from", &MissingError{Artifact: a, Reason: reason})
		return nil
	case v.Fetcher == nil:
		return kind.ErrNoProvider
	}
	return k.plan(v, t, a, reason)
}

func (k Kind) plan(v *kind.View, t *kind.Task, a *desired.Artifact, reason string) error {
	t.StagedAfter = a.After
	taken := ""
	for _, f := range a.Files {
		q := &kind.Change{Type: ledger.File, Path: v.Real(f.Path), Attrs: host.Attributes{Mode: f.Mode.Perm()}, Prepared: true, Asked: k.Asked(a)}
		info, err := v.Lstat(q.Path)
		if err != nil {
			return err
		}
		if err := v.MayChange(q, info); err != nil {
			return err
		}
		t.Changes = append(t.Changes, q)
		v.Expect(q)
		taken = cmp.Or(taken, q.TakenOver())
	}
	t.Act(kind.VerbFetch, reason+taken, kind.DisruptNone)
	t.Stage = func(ctx context.Context, t *kind.Task) error { return fetch(ctx, v, t, a) }
	return nil
}

// has says whether the fetcher has an artifact for which nobody gives a URL.
func has(v *kind.View, a *desired.Artifact) bool {
	o, ok := v.Fetcher.(kind.Has)
	return ok && o.Has(v.Host, a)
}

func fetch(ctx context.Context, v *kind.View, t *kind.Task, a *desired.Artifact) error {
	staged, err := v.Fetcher.Stage(ctx, v.Host, a)
	if err != nil {
		return err
	}
	t.Fetched = &staged
	kind.Detail(ctx, describe(&staged), staged.Bytes)
	return nil
}

// describe says where the bytes came from.
func describe(s *kind.Staged) string {
	var parts []string
	switch {
	case s.Cached:
		parts = append(parts, "from the cache, first "+s.URL)
	default:
		parts = append(parts, fmt.Sprintf("%.1f MB from %s", float64(s.Bytes)/1e6, s.URL))
	}
	if s.Resumed > 0 {
		parts = append(parts, fmt.Sprintf("continued %d times", s.Resumed))
	}
	if s.Unverified {
		parts = append(parts, "no digest known")
	}
	return strings.Join(parts, "; ")
}

// lacking says what is wrong with the files that are there; "" if nothing is.
// Mode bits of a program in place are repaired only where they keep it from
// running: a download would be a costly chmod.
func (k Kind) lacking(ctx context.Context, v *kind.View, a *desired.Artifact) (string, error) {
	var missing, edited, others []string
	for _, f := range a.Files {
		info, err := v.Lstat(v.Real(f.Path))
		if err != nil {
			return "", err
		}
		if info == nil || info.Mode.IsDir() {
			missing = append(missing, f.Path)
			continue
		}
		other, err := changed(v, v.Real(f.Path), info)
		if err != nil {
			return "", err
		}
		if other {
			edited = append(edited, f.Path)
		}
		if a.Image != "" && v.Ledger.Entries[v.Real(f.Path)].Owners[v.State.Owner] != k.Asked(a) {
			others = append(others, f.Path)
		}
	}
	switch {
	case len(missing) > 0:
		return "absent: " + strings.Join(missing, ", "), nil
	case len(edited) > 0 && len(a.Addresses()) > 0: // a program of the image is the image's matter
		return "not as downloaded: " + strings.Join(edited, ", "), nil
	case len(others) > 0:
		return "not known to be out of " + a.Image + ": " + strings.Join(others, ", "), nil
	case a.Version == "" || v.Fetcher == nil:
		return "", nil
	}
	return otherVersion(ctx, v, a)
}

// changed says whether a file is not what was downloaded. Where the ledger tells
// what that held, the content decides, but it is read only where the file is
// another, or has changed, since it was read last.
func changed(v *kind.View, name string, info *host.Info) (bool, error) {
	e := v.Ledger.Entries[name]
	switch {
	case v.Ledger.Halfway(name):
		return true, nil
	case e.Mark == "":
		return false, nil
	case e.Held == nil || !info.IsRegular():
		return e.Altered(info), nil
	}
	sum, err := v.Digest(name, info)
	return sum != e.Held.Sum, err
}

func otherVersion(ctx context.Context, v *kind.View, a *desired.Artifact) (string, error) {
	have, err := v.Fetcher.Version(ctx, v.Host, a.Files[0].Path)
	if ctx.Err() != nil {
		return "", errors.Join(ctx.Err(), err)
	}
	if err != nil {
		return fmt.Sprintf("%s does not tell its version: %v", a.Files[0].Path, err), nil
	}
	if have != "" && have != a.Version {
		return fmt.Sprintf("version %s, want %s", have, a.Version), nil
	}
	return "", nil
}

// modes repairs the attributes of programs in place: a download would be a costly
// chmod. Of the image's programs only those that can't run are touched.
func (k Kind) modes(v *kind.View, t *kind.Task, a *desired.Artifact) error {
	for _, f := range a.Files {
		q := &kind.Change{Type: ledger.Attributes, Path: v.Real(f.Path), Attrs: host.Attributes{Mode: f.Mode.Perm()}, Asked: k.Asked(a)}
		info, err := v.Lstat(q.Path)
		if err != nil {
			return err
		}
		if info == nil || !info.IsRegular() || !v.Ledger.Made(q.Path) && info.Mode&0o111 != 0 {
			continue
		}
		if err := v.RepairAttributes(t, q, info); err != nil {
			return err
		}
	}
	return nil
}
