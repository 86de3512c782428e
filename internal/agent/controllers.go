package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	core "k8s.io/api/core/v1"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/health"
	"github.com/berth-dev/berth/internal/agent/heartbeat"
	"github.com/berth-dev/berth/internal/agent/hostname"
	"github.com/berth-dev/berth/internal/agent/restart"
	"github.com/berth-dev/berth/internal/agent/secretname"
	"github.com/berth-dev/berth/internal/agent/token"
	"github.com/berth-dev/berth/internal/agent/unitcheck"
	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/imagestore"
	"github.com/berth-dev/berth/internal/unitname"
)

// conditionStands is how long SystemdUnitsReady stands before it is written again unchanged.
const conditionStands = 5 * time.Minute

// start runs a controller. Its error is the reason for which the agent ends, to be
// started anew.
func (a *Agent) start(ctx context.Context, g *errgroup.Group, run func(context.Context) error) {
	g.Go(func() error {
		if err := run(ctx); err != nil {
			a.Log.Info("the agent starts anew", "reason", err)
			return errRestart
		}
		return nil
	})
}

// lookAfter starts the controllers that need no API server.
func (a *Agent) lookAfter(ctx context.Context, g *errgroup.Group) {
	pulse := &imagestore.Pulse{}
	round := health.Round{Systemd: a.Host, Programs: []*health.Program{
		{Systemd: a.Host, Events: a.events, Name: "containerd", Unit: containerd.Unit, Paused: a.paused, Ask: pulse.Answers},
		{Systemd: a.Host, Events: a.events, Name: "kubelet", Unit: kubelet.Unit, Paused: a.paused, Ask: newKubeletPulse(a.Host).ask},
	}}
	a.start(ctx, g, round.Run)
	a.start(ctx, g, hostname.Check{Host: a.Host, Started: a.host}.Run)
}

// tokensFirst is how long the first document of a source waits for the tokens of its units.
const tokensFirst = 5 * time.Second

// control starts the controllers that go by what the cluster says. It returns when the
// tokens are in place that units of a document may start with.
func (a *Agent) control(ctx context.Context, g *errgroup.Group, client *apiserver.Client) {
	node := &a.node.latest
	beat := &heartbeat.Heartbeat{Calls: client, Node: node, Renew: a.options.Lease.Renew.Duration, Duration: a.options.Lease.Duration.Duration}
	tokens := a.tokens(client)
	var begun sync.WaitGroup
	begun.Add(len(tokens.Files))
	tokens.Begun = begun.Done
	restarts := &restart.Restarts{Systemd: a.Host, Calls: client, Events: a.events, Node: node, Own: config.Unit}
	address := &health.Address{Systemd: a.Host, Calls: client, Events: a.events, Node: node, Kubelet: kubelet.Unit, Paused: a.paused}
	toggles := &health.Toggles{Events: a.events, Node: node}
	runs := []func(context.Context) error{tokens.Run, beat.Run, restarts.Run, address.Run, toggles.Run}
	if *a.options.Sources.Secret {
		secret := &secretname.Check{Host: a.Host, Events: a.events, Node: node, Name: a.config.Controllers.OperatingSystemConfig.SecretName, File: a.file}
		runs = append(runs, secret.Run)
	}
	for _, run := range runs {
		a.start(ctx, g, run)
	}
	a.checkUnits(ctx, g, client, node)
	awaitAll(ctx, &begun, tokensFirst)
	close(a.tokensThere)
}

// awaitTokens waits until the tokens are in place that units of a document may start with.
// Those of an earlier start serve, and where there is no cluster nobody waits for long.
func (a *Agent) awaitTokens(ctx context.Context) {
	there := func(c config.TokenSecret) bool { _, err := a.Host.Lstat(c.Path); return err == nil }
	if files := a.config.Controllers.Token.SyncConfigs; !slices.ContainsFunc(files, func(c config.TokenSecret) bool { return !there(c) }) {
		return
	}
	select {
	case <-a.tokensThere:
	case <-time.After(tokensFirst):
	case <-ctx.Done():
	}
}

// tokens are the token files of the configuration.
func (a *Agent) tokens(cluster token.Cluster) *token.Sync {
	told := a.config.Controllers.Token
	s := &token.Sync{Cluster: cluster, Host: a.Host, Events: a.events, Every: told.SyncPeriod.Duration}
	for _, c := range told.SyncConfigs {
		s.Files = append(s.Files, token.File{Secret: c.SecretName, Path: c.Path})
	}
	return s
}

// awaitAll waits for a group, but no longer than a time.
func awaitAll(ctx context.Context, group *sync.WaitGroup, most time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func (a *Agent) checkUnits(ctx context.Context, g *errgroup.Group, client *apiserver.Client, node *apiserver.Latest[core.Node]) {
	now, told := make(chan struct{}, 1), a.config.Controllers.SystemdUnitCheck
	check := &unitcheck.Check{Systemd: a.Host, Calls: client, Node: node, Every: told.SyncPeriod.Duration, Stuck: told.StuckThreshold.Duration,
		Refresh: conditionStands, Now: now, Units: a.units}
	a.start(ctx, g, check.Run)
	for _, r := range a.reconcilers() {
		g.Go(func() error {
			for range r.Kept().Each(ctx) {
				select {
				case now <- struct{}{}:
				default:
				}
			}
			return nil
		})
	}
}

// units are those of all documents, each once; nil where no document is applied yet.
func (a *Agent) units() []unitcheck.Unit {
	var all []unitcheck.Unit
	for _, r := range a.reconcilers() {
		st, _ := r.Kept().Get()
		if st != nil && all == nil {
			all = []unitcheck.Unit{}
		}
		for _, u := range units(st) {
			if !slices.ContainsFunc(all, func(have unitcheck.Unit) bool { return have.Name == u.Name }) {
				all = append(all, u)
			}
		}
	}
	return all
}

func (a *Agent) paused() bool { return a.Host.Now().Before(a.repairsRestUntil()) }

// units are those of a document; of a template there are only instances.
func units(st *desired.State) []unitcheck.Unit {
	if st == nil {
		return nil
	}
	var all []unitcheck.Unit
	for _, r := range st.Resources {
		u, ok := r.(*desired.Unit)
		if !ok || unitname.IsTemplate(u.Name) {
			continue
		}
		all = append(all, unitcheck.Unit{Name: u.Name, Enable: enable(u), Stop: u.Activation == desired.Stopped})
	}
	return all
}

// enable is what a document says of whether a unit is enabled; nil where it does not.
// One that is to be stopped, and of which it says no more, must not run.
func enable(u *desired.Unit) *bool {
	enabled := u.Enablement == desired.Enabled
	if u.Mentioned || u.Enablement == desired.AnyEnablement && u.Activation != desired.Stopped {
		return nil
	}
	return &enabled
}
