// Package agent is the daemon that keeps a node as its cluster says: it holds a
// credential, follows what concerns the machine, and gives each part of it to the
// controller that sees to it. The controllers have packages of their own.
package agent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"path"
	"strings"
	"sync/atomic"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/credential"
	"github.com/berth-dev/berth/internal/agent/event"
	"github.com/berth-dev/berth/internal/agent/pause"
	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/agent/rollout"
	"github.com/berth-dev/berth/internal/agent/status"
	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/host"
)

// Namespace is where the agent's objects are, as published.
const Namespace = "kube-system"

// Settings are what the agent needs of the program; all but Log are required.
type Settings struct {
	Host   host.Host
	Issuer credential.Issuer
	// Open returns what makes targets of a source's documents; secrets reads a Secret.
	// try: a change that breaks what ran is taken back.
	Open func(src Source, secrets SecretReader, try bool) reconcile.Opener
	// Updater makes what puts the agent of a document in this one's place.
	Updater func(*config.Options, *event.Recorder, *slog.Logger) reconcile.SelfUpdate
	// Explain is the code, the cause and the remedy of an error.
	Explain func(error) (code, cause, remedy string)
	// NewLog makes the log that the configuration asks for; Log is that one.
	NewLog func(level, format string) *slog.Logger
	Log    *slog.Logger
	// Version is the program's own.
	Version   string
	ConfigDir string
	// Kubeconfig is that of the environment; "" is none.
	Kubeconfig string
	// Ready is called once the agent does its work, Release after a document of so
	// many bytes.
	Ready   func()
	Release func(size int)
	// Status is told what keeps the agent from its work; "" when that is over.
	Status func(text string)
}

// SecretReader reads a Secret of the agent's namespace.
type SecretReader func(ctx context.Context, name string) (*core.Secret, error)

// errRestart ends the agent so that systemd starts it anew.
var errRestart = errors.New("restart")

// Agent is one machine's.
type Agent struct {
	Settings
	orders
	host string
	// was is all that the agent was told when it began, refused what was told of an
	// error in what it is told since.
	was     []byte
	refused string
	keeper  *credential.Keeper
	node    *node
	events  *event.Recorder
	counts  status.Counts
	// tokensThere is closed when the tokens were synced once, or waited for in vain.
	tokensThere chan struct{}
	// owner is the Secret that was seen last.
	owner atomic.Pointer[meta.OwnerReference]
	// reconciler keeps what the Secret asks for, or the file in its place; files are the
	// sources beside it.
	reconciler *reconcile.Reconciler
	files      []fileSource
}

// New reads what the agent is told; where that is refused, what it took last. The error
// is a *config.Error where what it is told is wrong and it never took anything.
func New(s Settings) (*Agent, error) {
	a := &Agent{Settings: s, tokensThere: make(chan struct{})}
	refused := a.read(&a.Settings)
	if refused != nil && a.readKept(&a.Settings) != nil {
		return nil, refused
	}
	a.Log = s.NewLog(a.config.LogLevel, a.config.LogFormat)
	for _, n := range a.notes {
		a.Log.Info("of the configuration", "file", a.file, "note", n)
	}
	a.was = a.told()
	if err := a.assemble(); err != nil {
		return nil, err
	}
	if refused != nil {
		a.refuse(refused)
	} else if err := a.keep(s.Host); err != nil {
		a.Log.Warn("a start after a wrong configuration would fail", "error", err)
	}
	return a, nil
}

func (a *Agent) assemble() error {
	name, err := a.Host.ReadFile("/proc/sys/kernel/hostname")
	if err != nil {
		return fmt.Errorf("read the host's name: %w", err)
	}
	a.host = strings.ToLower(string(bytes.TrimSpace(name)))
	a.node = &node{name: cmp.Or(nodeName(a.Host), a.host)}
	a.events = event.New(a.node, a.node.name)
	if a.keeper, err = credential.New(a.Host, a.Issuer, a.config, a.options.Group, share(a.host)); err != nil {
		return err
	}
	a.assembleSources()
	return nil
}

// turns are those of the machines of the pool.
func (a *Agent) turns(leases rollout.Leases) *rollout.Turns {
	return &rollout.Turns{
		Leases: leases, Name: a.config.Controllers.OperatingSystemConfig.SecretName, Owner: a.owner.Load, Holder: a.host,
		Most: a.options.MaxUnavailable, Follow: a.node.followLease,
	}
}

// repairsRestUntil is when repairs go on after a pause; a time that is over where
// there is none.
func (a *Agent) repairsRestUntil() time.Time { return pause.Until(a.Host, a.node.Get()) }

// share is a number between 0 and 1 that a name has for good.
func share(name string) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return float64(h.Sum32()) / math.MaxUint32
}

// Run works until ctx ends, or until the agent has to be started anew; both are no
// error.
func (a *Agent) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, r := range a.reconcilers() {
		g.Go(func() error { return r.Run(ctx) })
	}
	a.followFiles(ctx, g)
	g.Go(func() error { return a.events.Run(ctx) })
	g.Go(func() error { return a.serve(ctx) })
	g.Go(func() error { return a.watchConfig(ctx) })
	g.Go(func() error { return a.watchNodeName(ctx) })
	g.Go(func() error { a.watchPause(ctx); return nil })
	a.lookAfter(ctx, g)
	g.Go(func() error { return a.connect(ctx, g) })
	a.Ready()
	if err := g.Wait(); !errors.Is(err, errRestart) {
		return err
	}
	return nil
}

// connect obtains the credential, however long that takes, and follows what the
// cluster has for this machine. Until then what is in force is kept up.
func (a *Agent) connect(ctx context.Context, g *errgroup.Group) error {
	pauses := apiserver.Intervals(time.Second, time.Minute)
	for ctx.Err() == nil {
		access, client, err := a.reach(ctx)
		if err == nil {
			a.Status("")
			a.follow(ctx, g, access, client)
			return nil
		}
		code, cause, remedy := a.Explain(err)
		a.Log.Error("no way to the API server yet", "code", code, "error", cause, "hint", remedy)
		a.Status(code + ": " + cause + " — " + remedy)
		_ = a.Host.Sleep(ctx, pauses.NextBackOff()) // it ends early with ctx alone
	}
	return nil
}

// reach is one try of connect.
func (a *Agent) reach(ctx context.Context) (access apiserver.Access, client *apiserver.Client, err error) {
	disk := a.dataDisk(ctx) // also where nobody gives a certificate: kubelet may run with its own
	access, err = a.keeper.Access(ctx)
	if err = errors.Join(disk, err); err != nil {
		return access, nil, err
	}
	if err = a.keeper.GiveKubelet(); err != nil {
		return access, nil, err
	}
	client, err = apiserver.NewClient(access)
	return access, client, err
}

func (a *Agent) follow(ctx context.Context, g *errgroup.Group, access apiserver.Access, client *apiserver.Client) {
	defer client.Close()
	a.node.client.Store(client)
	g.Go(func() error {
		r := renewal{a: a, client: client.Renew}
		a.keeper.Rotate(ctx, access, r.renewed, r.failed)
		return nil
	})
	g.Go(func() error {
		client.FollowNode(ctx, a.node.name, apiserver.Follower[core.Node]{See: a.seeNode, Fail: a.away("Node")})
		return nil
	})
	a.control(ctx, g, client)
	if !*a.options.Sources.Secret {
		<-ctx.Done() // the client is in use until then
		return
	}
	client.FollowSecret(ctx, Namespace, a.config.Controllers.OperatingSystemConfig.SecretName,
		apiserver.Follower[core.Secret]{See: a.seeSecret, Fail: a.away("Secret")})
}

// seeSecret notes who owns the Leases of the pool's turns, before the document can ask
// for one.
func (a *Agent) seeSecret(s *core.Secret) {
	if s != nil {
		a.owner.Store(&meta.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: s.Name, UID: s.UID})
	}
	a.reconciler.SeeSecret(s)
}

func (a *Agent) seeNode(n *core.Node) {
	if n != nil {
		n.Status.Images, n.ManagedFields = nil, nil // the larger part of a Node, and nobody's matter here
	}
	before := askedToPause(a.node.Get())
	a.node.latest.Set(n)
	for _, r := range a.reconcilers() {
		r.SeeNode()
	}
	if asked := askedToPause(n); asked != before {
		if asked != "" {
			a.tellPause(n)
		}
		a.lookAgain()
	}
}

// tellPause tells of an annotation that is no pause: repairs go on.
func (a *Agent) tellPause(n *core.Node) {
	if err := pause.Refused(a.Host, n); err != nil {
		a.Log.Warn("repairs go on", "error", err)
		a.events.Warning("PauseRefused", err.Error()+"; repairs go on")
	}
}

// askedToPause is what a Node says of a pause.
func askedToPause(n *core.Node) string {
	if n == nil {
		return ""
	}
	return n.Annotations[pause.Annotation]
}

// outageOver is how long nothing fails before an outage is over: whoever follows an object
// asks more often. That it is seen between two failures says less: a server may list it and
// let nobody watch it.
const outageOver = time.Minute

// away tells why an object can't be seen, once in an outage for each reason. A server that
// does not know who asks has the certificate looked at.
func (a *Agent) away(what string) func(error) {
	last, at := "", time.Time{}
	return func(err error) {
		if apiserver.Unknown(err) {
			a.keeper.Doubt()
		}
		over := time.Since(at) > outageOver
		at = time.Now()
		if over || err.Error() != last {
			last = err.Error()
			a.Log.Warn("can't follow the "+what, "error", err)
			if apierrors.IsForbidden(err) {
				a.events.Warning("Forbidden", "can't follow the "+what+": "+err.Error()+" — give the agent its rights: berth rbac prints them")
			}
		}
	}
}

// secret reads a Secret.
func (a *Agent) secret(ctx context.Context, name string) (*core.Secret, error) {
	c := a.node.client.Load()
	if c == nil {
		return nil, errNoServer
	}
	return c.GetSecret(ctx, Namespace, name)
}

// delay is how long a document waits: what the Node's annotation says, else a time of
// this node's own for this document, within the window of the options.
func (a *Agent) delay(checksum string) time.Duration {
	var annotations map[string]string
	if n := a.node.Get(); n != nil {
		annotations = n.Annotations
	}
	d, err := rollout.Delay(annotations, a.host, checksum, a.options.Jitter.Duration)
	if err != nil {
		a.Log.Warn("the delay is this node's own", "error", err)
	}
	return d
}

// watchConfig ends the agent when its configuration has changed.
func (a *Agent) watchConfig(ctx context.Context) error {
	if a.heed(ctx, append(a.beside(), a.ConfigDir, a.file), func() bool { return a.changed(ctx) }) {
		a.Log.Info("the configuration has changed: the agent starts anew", "directory", path.Dir(a.file))
		return errRestart
	}
	return nil
}

// heed looks at once, and whenever one of names changes, until look says that it
// has seen enough; false is the end of ctx. Where they can't be watched it looks each
// minute.
func (a *Agent) heed(ctx context.Context, names []string, look func() (enough bool)) bool {
	for {
		events, err := a.Host.Watch(ctx, host.Watched{Names: names})
		if look() {
			return true
		}
		if err == nil {
			for range events {
				if look() {
					return true
				}
			}
			return false
		}
		if ctx.Err() == nil {
			a.Log.Warn("changes are seen late", "of", strings.Join(names, ", "), "error", err)
		}
		if a.Host.Sleep(ctx, time.Minute) != nil {
			return false
		}
	}
}

// changed says whether the agent is told something else now by which it can go, and then
// keeps the reconciler from going on until ctx ends. A document that brings a new
// configuration is applied to its end first: one that does not hold takes it back.
func (a *Agent) changed(ctx context.Context) bool {
	if bytes.Equal(a.was, a.told()) {
		a.refused = ""
		return false
	}
	goOn := a.rest()
	if bytes.Equal(a.was, a.told()) || !a.takes() {
		goOn()
		return false
	}
	context.AfterFunc(ctx, goOn)
	return true
}

// watchPause looks at everything when a pause begins or ends early.
func (a *Agent) watchPause(ctx context.Context) {
	was, _ := a.Host.ReadFile(pause.Path) // none is a state, too
	a.heed(ctx, []string{pause.Path}, func() bool {
		if now, _ := a.Host.ReadFile(pause.Path); !bytes.Equal(now, was) {
			was = now
			a.lookAgain()
		}
		return false
	})
}
