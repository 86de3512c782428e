package join

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
	"github.com/berth-dev/berth/internal/provision"
	"github.com/berth-dev/berth/internal/report"
)

// Leave withdraws what documents asked for and gives the machine back. Where the
// machine was a node and is none without them, its pods, kubelet and the container
// runtime end first, in this order. It does what it can and says what stayed; an error
// is for what kept it from beginning. A run that was cut off is continued by the next.
func Leave(ctx context.Context, o Options) (Outcome, error) {
	if there, err := o.hasState(); err != nil || !there {
		return Outcome{Nothing: true}, err
	}
	unlock, err := provision.Lock(ctx, o.Host, o.Command)
	if err != nil {
		return Outcome{}, err
	}
	l := &leave{Options: o}
	err = l.run(ctx)
	there, looked := l.inAzure()
	return Outcome{Nothing: l.nothing, Stayed: l.stayed, InAzure: there && !l.nothing}, errors.Join(err, looked, unlock())
}

// leave is one run.
type leave struct {
	Options
	led *ledger.Ledger
	// owners are those that are withdrawn, others those that stay.
	owners, others []desired.Owner
	// begun is the run that this one continues; nil where there is none.
	begun *record
	// node is what the machine is registered as; "" where it is not known. uid is its
	// Node's, once that was seen to be this machine's; cordoned: berth did that.
	node, uid string
	cordoned  bool
	// cutOff: a run before this one has not ended, whatever became of the machine since.
	cutOff bool

	nothing bool
	stayed  []string
}

func (l *leave) run(ctx context.Context) error {
	if err := l.look(ctx); err != nil || l.nothing {
		return err
	}
	if !l.endsNode() {
		l.unregister(ctx)
		l.withdraw(ctx)
		return l.forget(ctx)
	}
	switch {
	case l.begun == nil:
		if err := l.begin(ctx); err != nil {
			return err
		}
	case l.begun.Done:
		l.unregister(ctx)
		return l.removeState()
	default:
		if err := l.recognise(ctx); err != nil {
			return err
		}
	}
	steps := append([]func(context.Context){l.stopAgent, l.drain}, l.endNode()...)
	if err := inTurn(ctx, append(steps, l.unregister, l.withdraw, l.restoreProxyValues, l.restoreDirs, l.removeNode)...); err != nil {
		return err
	}
	return l.forget(ctx)
}

// endNode ends what makes the machine a node, and takes away what that left.
func (l *leave) endNode() []func(context.Context) {
	return []func(context.Context){l.stopKubelet, l.endSandboxes, l.endGroups, l.stopRuntime, l.clearNetwork, l.unmountAll, l.offTempDisk, l.clearDirs}
}

// inTurn takes steps until the context ends.
func inTurn(ctx context.Context, steps ...func(context.Context)) error {
	for _, step := range steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		step(ctx)
	}
	return nil
}

// TakeAgent takes the agent away with what documents of its own owners asked for. Where
// kubelet goes with them and did not run before berth, its pods end first and what it, the
// runtime and CNI plugins left goes, too; nothing is evicted, and the Node stays in the
// cluster. Where nobody else has anything on the machine, berth's own state goes. A run that
// was cut off is continued by the next. It returns what is not as it was before, and why.
func TakeAgent(ctx context.Context, o Options, own ...desired.Owner) (stayed []string, err error) {
	l := &leave{Options: o}
	if l.led, err = new(ledger.Reader).Load(o.Host); err != nil {
		return nil, err
	}
	there, err := o.hasState()
	if err != nil {
		return nil, err
	}
	for _, owner := range l.allOwners() {
		if !slices.Contains(own, owner) {
			l.others = append(l.others, owner)
		}
	}
	if l.endsNode() && !l.ranBefore(kubelet.Unit) {
		if err := inTurn(ctx, append([]func(context.Context){l.stopAgent}, l.endNode()...)...); err != nil {
			return l.stayed, err
		}
	}
	kept, err := o.Reset(ctx)
	l.stayed = append(l.stayed, kept...)
	if err != nil {
		return l.stayed, err
	}
	l.removeTokens()
	if len(l.others) == 0 && there {
		l.restoreProxyValues(ctx)
		l.restoreDirs(ctx)
		err = l.forget(ctx)
	}
	return l.stayed, err
}

// ranBefore says whether a unit ran when berth first came, as on a node of another agent: then
// the engine has it run again.
func (l *leave) ranBefore(unit string) bool {
	e := l.led.Entries[string(desired.UnitID(unit))]
	return e.Was != nil && e.Was.Value == "active"
}

// allOwners are those who have something on the machine, in order.
func (l *leave) allOwners() []desired.Owner {
	all := map[desired.Owner]bool{}
	for _, e := range l.led.Entries {
		for o := range e.Owners {
			all[o] = true
		}
	}
	if l.led.Owed != nil {
		all[l.led.Owed.Owner] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// hasState says whether berth remembers anything of this machine.
func (o *Options) hasState() (bool, error) {
	names, err := o.Host.ReadDir(paths.StateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for berth's state: %w", err)
	}
	return len(names) == 0 || slices.ContainsFunc(names, isState), nil
}

// isState says whether a name in berth's directory is berth's own. Bundles are not: a
// person has put them there.
func isState(name string) bool {
	return path.Join(paths.StateDir, name) != artifact.BundleDir
}

// look finds out whose the machine is.
func (l *leave) look(ctx context.Context) (err error) {
	if l.led, err = new(ledger.Reader).Load(l.Host); err != nil {
		return err
	}
	if l.begun, err = l.interrupted(ctx); err != nil {
		return err
	}
	for _, o := range l.allOwners() {
		if l.Owner == "" || o == l.Owner {
			l.owners = append(l.owners, o)
		} else {
			l.others = append(l.others, o)
		}
	}
	inAzure, err := l.inAzure()
	owed := inAzure && (l.Owner == "" || l.Owner == desired.OwnerNode)
	l.nothing = len(l.owners) == 0 && l.begun == nil && !owed && (l.Owner != "" || len(l.others) > 0)
	return err
}

// endsNode says whether kubelet is one of those that nobody wants any more.
func (l *leave) endsNode() bool {
	if l.begun != nil {
		return true
	}
	e, ok := l.led.Entries[string(desired.UnitID(kubelet.Unit))]
	if !ok {
		e, ok = l.led.Entries[path.Join(path.Dir(kubelet.DropInDir), kubelet.Unit)]
	}
	return ok && !slices.ContainsFunc(l.others, e.Owns)
}

// withdraw has the engine take away what documents asked for.
func (l *leave) withdraw(ctx context.Context) {
	l.takeAgent(ctx)
	for _, owner := range l.owners {
		st := &desired.State{Owner: owner}
		if err := st.Seal(); err != nil {
			l.failed("withdraw the "+string(owner)+" document", err)
			continue
		}
		if owner == desired.OwnerAKS { // first: a run that comes after does not know the owner any more
			l.failed("remove "+report.SentinelPath, l.removeForGood(report.SentinelPath))
		}
		res, err := l.Apply(ctx, st)
		var kept []string
		if res != nil && res.Plan != nil {
			kept = res.Plan.Kept
		}
		l.keep("withdraw the "+string(owner)+" document", kept, err)
		if err == nil {
			l.Say("withdrew the " + string(owner) + " document")
		}
	}
	l.removeTokens()
}

// unregister takes back what was made in Azure for the machine's own document, while what
// that needs of the machine (certificates, proxies, the agent of Azure Arc) is there.
func (l *leave) unregister(ctx context.Context) {
	if l.Unregister == nil || slices.Contains(l.others, desired.OwnerNode) || l.Owner != "" && l.Owner != desired.OwnerNode {
		return
	}
	for _, err := range l.Unregister(ctx, l.Say) {
		l.failed("undo what was made in Azure", err)
	}
}

// inAzure says whether something is in Azure that was made for the machine.
func (l *leave) inAzure() (bool, error) {
	info, err := ledger.Lstat(l.Host, azure.MadePath)
	if err != nil {
		return false, fmt.Errorf("look for what was made in Azure: %w", err)
	}
	return info != nil, nil
}

// removeTokens removes the tokens of an identity that the machine has no longer: they
// would be good for a day without it.
func (l *leave) removeTokens() {
	info, err := ledger.Lstat(l.Host, azureidentity.Path)
	if err == nil && info == nil {
		err = (clearing{host: l.Host}).remove(azure.CacheDir)
	}
	l.failed("remove tokens", err)
}

// takeAgent takes the agent away with what it has of its own, the key of its certificate and
// tokens, also where nothing of its documents is on the machine.
func (l *leave) takeAgent(ctx context.Context) {
	goes := slices.Contains(l.owners, l.AgentOwner)
	if !goes && l.Owner == "" {
		var err error
		goes, err = l.AgentThere()
		l.failed("look for the agent", err)
	}
	if !goes {
		return
	}
	kept, err := l.Reset(ctx)
	l.keep("take the agent away", kept, err)
}

// keep notes what the engine kept. What it found on the machine in the first place is
// as it was; only where the ledger was lost nobody knows.
func (l *leave) keep(what string, kept []string, err error) {
	for _, k := range kept {
		name, _, _ := strings.Cut(k, " ")
		if l.led.Found != nil && l.led.Entries[name].Adopted {
			l.Say(name + " stays: it was there before berth")
			continue
		}
		l.stay(k)
	}
	l.failed(what, err)
}

// failed notes what could not be done.
func (l *leave) failed(what string, err error) {
	if err == nil {
		return
	}
	line := what + ": " + strings.ReplaceAll(err.Error(), "\n", "; ")
	if remedy := remedyOf(err); remedy != "" {
		line += ". " + remedy
	}
	l.stay(line)
}

// remedyOf is the first hint that an error carries.
func remedyOf(err error) string {
	for e := range exitcode.Tree(err) {
		if h, ok := e.(interface{ Hint() string }); ok && h.Hint() != "" {
			return h.Hint()
		}
	}
	return ""
}

func (l *leave) stay(line string) { l.stayed = append(l.stayed, line) }

// forget takes berth's own state away, unless it still says what is somebody's.
func (l *leave) forget(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	led, err := new(ledger.Reader).Load(l.Host)
	if err != nil {
		return err
	}
	if len(l.others) > 0 && (len(led.Entries) > 0 || led.Owed != nil) {
		return l.removeForGood(recordPath)
	}
	names := len(led.Entries)
	if l.endsNode() {
		names = onMachine(led)
	}
	if names > 0 || led.Owed != nil {
		l.stay(fmt.Sprintf("%s: it still names %d things of this machine", paths.StateDir, names))
		return nil
	}
	l.nodesLeft(led)
	if err := l.remember(record{Node: l.node, Done: true}); err != nil {
		return err
	}
	return l.removeState()
}

// onMachine counts what of a ledger is on the machine itself. A Node is the cluster's:
// where that was out of reach, nobody here can do more about it.
func onMachine(led *ledger.Ledger) int {
	n := 0
	for id := range led.Entries {
		if !strings.HasPrefix(id, nodeID) {
			n++
		}
	}
	return n
}

// nodeID begins the ids of a Node and of its labels: "node:NAME/LABEL".
const nodeID = "node:"

// nodesLeft names the Nodes of which the ledger alone knows: removeNode tells of the
// machine's own.
func (l *leave) nodesLeft(led *ledger.Ledger) {
	for _, id := range slices.Sorted(maps.Keys(led.Entries)) {
		name, label, _ := strings.Cut(strings.TrimPrefix(id, nodeID), "/")
		if label == "" && name != l.node {
			l.stay("Node " + name + " may be in the cluster still, which was not asked: kubectl delete node " + name)
		}
	}
}

// removeState removes berth's state, the record of this run last: until then a run
// that is cut off is continued. Until its file is gone the ledger says that it has
// nothing. What says that something is in Azure still stays, alone: without it no later
// run would take that back.
func (l *leave) removeState() error {
	inAzure, err := l.inAzure()
	if err != nil {
		return err
	}
	if err := (clearing{host: l.Host}).remove(azure.CacheDir); err != nil {
		return fmt.Errorf("remove tokens: %w", err)
	}
	names, err := l.Host.ReadDir(paths.StateDir)
	if err != nil {
		return fmt.Errorf("remove berth's state: %w", err)
	}
	own := []string{ledger.OriginalsDir, ledger.Path}
	for _, name := range names {
		if p := path.Join(paths.StateDir, name); p != recordPath && p != azure.MadePath && isState(name) {
			own = append(own, p)
		}
	}
	c := clearing{host: l.Host}
	for _, p := range own {
		if err := c.remove(p); err != nil {
			return fmt.Errorf("remove berth's state: %w", err)
		}
	}
	if err := c.sync(paths.StateDir); err != nil { // the record goes after all else, also where the power does
		return fmt.Errorf("remove berth's state: %w", err)
	}
	last := []string{recordPath, paths.StateDir}
	if inAzure {
		l.stay(azure.MadePath + ": the next berth leave tries again; where that can't help, delete what is in Azure, and then this file")
		last = last[:1]
	} else if slices.ContainsFunc(names, func(name string) bool { return !isState(name) }) {
		last = last[:1]
	}
	for _, p := range last {
		if err := ledger.RemoveIfThere(l.Host, p); err != nil {
			return fmt.Errorf("remove berth's state: %w", err)
		}
	}
	return errors.Join(c.sync(paths.StateDir), l.Host.SyncDir(path.Dir(paths.StateDir)))
}

// running says whether a unit does, or is about to.
func (l *leave) running(ctx context.Context, unit string) bool {
	s, err := l.Host.Unit(ctx, unit)
	return err == nil && (s.ActiveState == "active" || s.ActiveState == "activating" || s.ActiveState == "reloading")
}

func (l *leave) stop(ctx context.Context, unit string) {
	s, err := l.Host.Unit(ctx, unit)
	if err != nil || s.ActiveState == "inactive" || s.ActiveState == "failed" && s.MainPID == 0 {
		l.failed("look at "+unit, ignoreNoSystemd(err))
		return
	}
	if err := l.Host.StopUnit(ctx, unit); err != nil {
		l.failed("stop "+unit, err)
		return
	}
	l.Say("stopped " + unit)
}

func ignoreNoSystemd(err error) error {
	if errors.Is(err, host.ErrNoSystemd) {
		return nil
	}
	return err
}
