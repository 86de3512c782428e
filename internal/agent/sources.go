package agent

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/agent/selfupdate"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
)

// settled is how long a document in a file has to be as it is before it is taken: it
// may be written in several steps, and a part of it may be a document, too.
const settled = 500 * time.Millisecond

// Source is where documents come from, and who may own what they ask for.
type Source struct {
	// Owners are those whose documents it may bring, one of them at a time.
	Owners []desired.Owner
	// File is theirs; "" is the Secret.
	File string
}

// fileSource is a source beside the Secret's.
type fileSource struct {
	path       string
	reconciler *reconcile.Reconciler
}

// assembleSources makes a reconciler for each source: the Secret's, which a file may
// stand in for, and those of files.
func (a *Agent) assembleSources() {
	s := a.options.Sources
	o := a.common()
	o.Owners = []desired.Owner{desired.OwnerOSC}
	if *s.Secret && s.NodeConfig == "" {
		o.Owners = append(o.Owners, desired.OwnerNode)
	}
	o.Opener, o.Record, o.Published = a.Open(Source{o.Owners, s.OperatingSystemConfig}, a.secret, *a.options.Trial), reconcile.RecordPath, true
	o.Turns = &turn{log: a.Log, mine: func() { a.reconciler.Again() }, turns: a.turns(a.node)}
	o.Self = a.Updater(a.options, a.events, a.Log)
	o.Ahead = a.tokensAhead
	self := o.Self
	o.Delay, o.Labels = a.delay, func(t *reconcile.Target) map[string]string { return labels(a.Host, a.config, t) }
	if !*s.Secret {
		o.Delay = noDelay
	}
	a.reconciler = reconcile.New(o)
	for _, f := range []struct {
		owner        desired.Owner
		path, record string
	}{
		{desired.OwnerAKS, s.AKSNodeConfig, reconcile.RecordPathAKS},
		{desired.OwnerNode, s.NodeConfig, reconcile.RecordPathNode},
	} {
		if f.path == "" {
			continue
		}
		o = a.common()
		o.Owners = []desired.Owner{f.owner}
		o.Opener, o.Record = a.Open(Source{o.Owners, f.path}, a.secret, *a.options.Trial), f.record
		o.Self, o.Joined = noUpdate{self}, a.joinedByFile
		o.Turns, o.Delay, o.Labels = noTurns{}, noDelay, func(*reconcile.Target) map[string]string { return nil }
		a.files = append(a.files, fileSource{f.path, reconcile.New(o)})
	}
}

// common are the options of all reconcilers.
func (a *Agent) common() reconcile.Options {
	return reconcile.Options{
		Host: a.Host, Node: a.node, Events: a.events, Drift: a.options.Drift, Own: []string{a.file},
		SyncPeriod: a.config.Controllers.OperatingSystemConfig.SyncPeriod.Duration,
		Paused:     a.repairsRestUntil,
		Joined:     a.joined,
		Ahead:      func(context.Context, *desired.State) {},
		Release:    a.Release,
		Count:      a.counts.Add,
		Explain:    a.Explain, Log: a.Log,
	}
}

// noDelay: who writes a file on a machine has chosen the time.
func noDelay(string) time.Duration { return 0 }

// noTurns: a file on one machine is nobody else's.
type noTurns struct{}

// Acquire implements reconcile.Turns.
func (noTurns) Acquire(ctx context.Context) context.Context { return ctx }

// Release implements reconcile.Turns.
func (noTurns) Release(context.Context) error { return nil }

// noUpdate: a document in a file beside the Secret has no agent. An agent on trial waits with it until the
// other document has let it prove itself.
type noUpdate struct{ self reconcile.SelfUpdate }

var errOnTrial = errors.New("the agent is on trial: it takes this document when it has proved itself")

// OnTrial implements reconcile.SelfUpdate.
func (n noUpdate) OnTrial(ctx context.Context) (bool, error) { return n.self.OnTrial(ctx) }

// Prove implements reconcile.SelfUpdate.
func (noUpdate) Prove(context.Context) error { return errOnTrial }

// Claim implements reconcile.SelfUpdate.
func (noUpdate) Claim(context.Context, *selfupdate.Parts) error { return nil }

// Update implements reconcile.SelfUpdate.
func (noUpdate) Update(context.Context, *selfupdate.Parts, string, func() error) (bool, error) {
	return false, nil
}

// Own implements reconcile.SelfUpdate.
func (noUpdate) Own() (*desired.State, error) { return nil, nil }

// Repair implements reconcile.SelfUpdate.
func (noUpdate) Repair(context.Context, *desired.State, converge.Scope) (*converge.Result, error) {
	return nil, errors.New("this document has no agent")
}

func (a *Agent) reconcilers() []*reconcile.Reconciler {
	all := []*reconcile.Reconciler{a.reconciler}
	for _, f := range a.files {
		all = append(all, f.reconciler)
	}
	return all
}

// lookAgain looks at everything.
func (a *Agent) lookAgain() {
	for _, r := range a.reconcilers() {
		r.LookAgain()
	}
}

// rest is that of all reconcilers.
func (a *Agent) rest() (goOn func()) {
	var all []func()
	for _, r := range a.reconcilers() {
		all = append(all, r.Rest())
	}
	return func() {
		for _, f := range all {
			f()
		}
	}
}

// followFiles takes the documents of files whenever they change.
func (a *Agent) followFiles(ctx context.Context, g *errgroup.Group) {
	all := a.files
	if p := a.options.Sources.OperatingSystemConfig; p != "" {
		all = append(slices.Clip(all), fileSource{p, a.reconciler})
	}
	for _, f := range all {
		g.Go(func() error {
			a.awaitTokens(ctx)
			a.followFile(ctx, f.path, f.reconciler.See)
			return nil
		})
	}
}

func (a *Agent) followFile(ctx context.Context, p string, see func(*reconcile.Document)) {
	said := ""
	a.heed(ctx, []string{p}, func() bool {
		text, err := a.readSettled(ctx, p)
		switch {
		case ctx.Err() != nil:
		case err == nil:
			said = ""
			see(reconcile.DocumentOf(text))
		case err.Error() != said:
			said = err.Error()
			a.Log.Warn("no document in the file: the last one stays in force", "error", err)
			a.events.Warning("ConfigRefused", "no document in the file: the last one stays in force: "+said)
		}
		return false
	})
}

// readSettled reads a file once nobody has changed it for a while.
func (a *Agent) readSettled(ctx context.Context, p string) ([]byte, error) {
	for {
		before, err := a.Host.Lstat(p)
		if err != nil {
			return nil, err
		}
		if left := settled - a.Host.Now().Sub(before.ChangeTime); left > 0 && left <= settled {
			if err := a.Host.Sleep(ctx, left); err != nil {
				return nil, err
			}
			continue
		}
		text, err := a.Host.ReadFile(p)
		if err != nil {
			return nil, err
		}
		if after, err := a.Host.Lstat(p); err == nil && after.Unchanged(before) {
			return text, nil
		} else if errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}
