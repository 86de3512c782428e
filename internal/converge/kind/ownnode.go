package kind

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/desired"
)

// lookTimeout bounds the question for a Node: one that is not answered holds up no
// more than this.
const lookTimeout = 2 * time.Second

// registers is how long a kubelet that runs may take to create its Node, and to be
// told its addresses: it tries at growing intervals of at most 7 s.
const registers = 10 * time.Second

// Sight is what is known of a Node.
type Sight int

// What may be known: nothing on a machine that has no credential, or is to get
// another one; nothing where there was no answer; that there is none, or what it is.
const (
	NodeUnjoined Sight = iota
	NodeUnknown
	NodeAbsent
	NodePresent
)

// OwnNode is one look at the Node of this machine, which all who ask in one run
// share.
type OwnNode struct {
	Sight   Sight
	Session NodeSession
	// Node is nil unless it is present; Err says why it is unknown.
	Node *NodeState
	Err  error

	once sync.Once
	// isNew: this run has created it, as it is wanted.
	isNew bool
}

// AnnounceID is the Node, created ahead of kubelet.
const AnnounceID desired.ID = "node"

// OwnNode looks at a Node with the credential of a kubeconfig. Credentials are
// observed before.
func (v *View) OwnNode(ctx context.Context, kubeconfig, name string) (*OwnNode, error) {
	if v.Nodes == nil {
		return nil, ErrNoProvider
	}
	o := v.ownNode(kubeconfig, name)
	o.once.Do(func() { o.look(ctx, v, kubeconfig, name) })
	return o, nil
}

func (v *View) ownNode(kubeconfig, name string) *OwnNode {
	return v.Shared("node "+name+" "+kubeconfig, func() any { return &OwnNode{} }).(*OwnNode)
}

// NodeIsNew notes that this run has created a Node, as it is wanted.
func (v *View) NodeIsNew(kubeconfig, name string) { v.ownNode(kubeconfig, name).isNew = true }

func (o *OwnNode) look(ctx context.Context, v *View, kubeconfig, name string) {
	if v.getsCredential(kubeconfig) {
		_, _ = v.Nodes.Open(kubeconfig, name) // what was asked ahead with the old one answers nobody
		return
	}
	o.ask(ctx, v, kubeconfig, name)
}

// LookAgain looks at a Node of which nothing was known, when the credential is in force.
// Of one that this run has created nothing is asked.
func (o *OwnNode) LookAgain(ctx context.Context, v *View, kubeconfig, name string) {
	if o.Sight == NodeUnjoined && !o.isNew {
		o.ask(ctx, v, kubeconfig, name)
	}
}

func (o *OwnNode) ask(ctx context.Context, v *View, kubeconfig, name string) {
	if o.Session, o.Err = v.Nodes.Open(kubeconfig, name); o.Err != nil {
		if !errors.Is(o.Err, fs.ErrNotExist) {
			o.Sight = NodeUnknown
		}
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	switch o.Node, o.Err = o.Session.Get(ctx); {
	case o.Err != nil:
		o.Sight = NodeUnknown
	case o.Node == nil:
		o.Sight = NodeAbsent
	default:
		o.Sight = NodePresent
	}
}

// getsCredential says whether the plan brings the credential behind a kubeconfig:
// the one that is there does not serve.
func (v *View) getsCredential(kubeconfig string) bool {
	t := v.Task(desired.ClientCertificateID(kubeconfig))
	return t != nil && slices.ContainsFunc(t.Actions, func(a Action) bool { return a.Verb == VerbIssue || a.Verb == VerbRestore })
}

// Rejoins says whether the credential that is missing is of the cluster that the ledger's
// was of.
func (v *View) Rejoins(kubeconfig string) bool {
	if c, ok := v.State.Lookup(desired.ClientCertificateID(kubeconfig)).(*desired.ClientCertificate); ok {
		return v.Ledger.Entries[string(c.ID())].Owners[v.State.Owner] == c.Holder()
	}
	q, e := v.Expected(kubeconfig), v.Ledger.Entries[kubeconfig]
	return q != nil && q.Sum() != "" && q.Sum() == e.Applied.Sum
}

// StartOf says when a kubelet that runs was started, by the clock as it is now, and
// whether it has had the time for what it does once after its start. running is false
// for one that does not run.
func (v *View) StartOf(ctx context.Context, unit string) (start time.Time, hadTime, running bool, err error) {
	st, err := v.Host.Unit(ctx, unit)
	if err != nil || st.ActiveState != "active" {
		return start, false, false, err
	}
	return v.Host.Now().Add(-st.ActiveFor), st.ActiveFor >= registers, true, nil
}
