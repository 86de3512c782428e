package converge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

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

func (p *planning) artifact(ctx context.Context, t *task, a *desired.Artifact) error {
	reason, err := p.lacking(ctx, a)
	if err != nil {
		return err
	}
	if reason == "" {
		return p.programModes(t, a)
	}
	nowhere := len(a.URLs) == 0 && !p.offers(a)
	switch {
	case p.opt.NoFetch && nowhere:
		t.postpone(VerbFetch, reason+"; must be in the image: the document names no address")
		return nil
	case p.opt.NoFetch:
		t.postpone(VerbFetch, reason+"; fetched on first boot")
		return nil
	case nowhere:
		t.block(VerbFetch, reason, "the document names no address to fetch it from", &MissingError{Artifact: a, Reason: reason})
		return nil
	}
	if p.opt.Fetcher == nil {
		return errNoProvider
	}
	t.staged = a.After
	taken := ""
	for _, f := range a.Files {
		info, err := lstat(p.h, f.Path)
		if err != nil {
			return err
		}
		q := &put{kind: putFile, path: f.Path, attrs: host.Attributes{Mode: f.Mode.Perm()}, prepared: true, asked: askedOf(a)}
		if err := p.mayPut(q, info); err != nil {
			return err
		}
		t.puts = append(t.puts, q)
		p.expect(q)
		taken = cmp.Or(taken, q.takenOver())
	}
	t.act(VerbFetch, reason+taken, DisruptNone)
	t.stage = func(ctx context.Context, t *task) error { return p.fetch(ctx, t, a) }
	return nil
}

// offers says whether the fetcher has an artifact for which nobody gives a URL.
func (p *planning) offers(a *desired.Artifact) bool {
	o, ok := p.opt.Fetcher.(Offerer)
	return ok && o.Offers(p.h, a)
}

func (p *planning) fetch(ctx context.Context, t *task, a *desired.Artifact) error {
	staged, err := p.opt.Fetcher.Stage(ctx, p.h, a)
	if err != nil {
		return err
	}
	t.staging = &staged
	detail(ctx, staged.describe(), staged.Bytes)
	return nil
}

// describe says where the bytes came from.
func (s *Staged) describe() string {
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
func (p *planning) lacking(ctx context.Context, a *desired.Artifact) (string, error) {
	var missing []string
	for _, f := range a.Files {
		info, err := lstat(p.h, f.Path)
		if err != nil {
			return "", err
		}
		if info == nil || info.Mode.IsDir() {
			missing = append(missing, f.Path)
		}
	}
	if len(missing) > 0 {
		return "absent: " + strings.Join(missing, ", "), nil
	}
	if reason, err := p.edited(a); err != nil || reason != "" && len(a.URLs) > 0 {
		return reason, err
	}
	if a.Version == "" || p.opt.Fetcher == nil {
		return "", nil
	}
	return p.otherVersion(ctx, a)
}

func (p *planning) otherVersion(ctx context.Context, a *desired.Artifact) (string, error) {
	have, err := p.opt.Fetcher.Version(ctx, p.h, a.Files[0].Path)
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
