package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/desired"
)

// inherit takes over what the published agent has put on the machine, by what it says
// itself that it was asked for: what the next document does not name any more goes.
// Where its word can't be understood the machine is taken as it is, and all of it
// stays. Whatever else is in the way may pass: it is tried again until a document of
// this agent is there.
func (r *Reconciler) inherit(ctx context.Context) {
	if !r.o.Published || r.owner != desired.OwnerOSC || r.record.Inherited || r.current != nil {
		return
	}
	text, err := r.o.Host.ReadFile(config.FormerDocument)
	if errors.Is(err, fs.ErrNotExist) {
		r.record.Inherited = true
		return
	}
	var taken []string
	if err == nil {
		taken, err = r.inheritFrom(ctx, DocumentOf(text))
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		_, r.record.Inherited = errors.AsType[*RefusedError](err)
		r.notInherited(err)
		return
	}
	r.record.Inherited = true
	r.o.Log.Info("what the former agent has put here is taken over", "file", config.FormerDocument, "items", len(taken))
}

// notInherited tells it once.
func (r *Reconciler) notInherited(err error) {
	text := "what the former agent has put here is not taken over, and stays: " + err.Error()
	if r.uninherited == text {
		return
	}
	r.uninherited = text
	r.o.Log.Warn(text, "file", config.FormerDocument)
	r.o.Events.Warning("NotInherited", text)
}

func (r *Reconciler) inheritFrom(ctx context.Context, d *Document) ([]string, error) {
	t, err := r.o.Opener.Former(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", config.FormerDocument, err)
	}
	return t.Engine.Inherit(ctx, t.State)
}

// disinherit takes away what the published agent remembers: it is no longer true,
// and would mislead whoever reads it next.
func (r *Reconciler) disinherit() {
	for _, p := range []string{config.FormerDocument, config.FormerChanges} {
		err := r.o.Host.Remove(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = r.o.Host.SyncDir(path.Dir(p))
		}
		if err != nil {
			r.o.Log.Warn("what the former agent remembers is left", "error", err)
		}
	}
}
