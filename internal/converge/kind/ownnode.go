package kind

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
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

// OwnNode is the Node of this machine as one run sees it, which all who ask share.
type OwnNode struct {
	Sight   Sight
	Session NodeSession
	// Node is nil unless it is present; Err says why it is unknown.
	Node *NodeState
	Err  error
	// IsNew: this run has created it, as it is wanted.
	IsNew bool

	v                *View
	kubeconfig, name string
	once             sync.Once
}

// AnnounceID is the Node, created ahead of kubelet.
const AnnounceID desired.ID = "node"

// NodeOf is a Node, seen with the credential of a kubeconfig; nobody may have looked at it yet.
func NodeOf(v *View, kubeconfig, name string) *OwnNode {
	return v.Shared("node "+name+" "+kubeconfig, func() any { return &OwnNode{v: v, kubeconfig: kubeconfig, name: name} }).(*OwnNode)
}

// LookAtNode looks at a Node, once. Credentials are observed before.
func LookAtNode(ctx context.Context, v *View, kubeconfig, name string) (*OwnNode, error) {
	if v.Nodes == nil {
		return nil, ErrNoProvider
	}
	o := NodeOf(v, kubeconfig, name)
	o.once.Do(func() { o.look(ctx) })
	return o, nil
}

func (o *OwnNode) look(ctx context.Context) {
	if o.getsCredential() {
		_, _ = o.v.Nodes.Open(o.kubeconfig, o.name) // what was asked ahead with the old one answers nobody
		return
	}
	o.ask(ctx)
}

// LookAgain looks at a Node of which nothing was known, when the credential is in force.
// Of one that this run has created nothing is asked.
func (o *OwnNode) LookAgain(ctx context.Context) {
	if o.Sight == NodeUnjoined && !o.IsNew {
		o.ask(ctx)
	}
}

func (o *OwnNode) ask(ctx context.Context) {
	if o.Session, o.Err = o.v.Nodes.Open(o.kubeconfig, o.name); o.Err != nil {
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

// getsCredential says whether the plan brings the credential behind the kubeconfig:
// the one that is there does not serve.
func (o *OwnNode) getsCredential() bool {
	t := o.v.Task(desired.ClientCertificateID(o.kubeconfig))
	return t != nil && slices.ContainsFunc(t.Actions, func(a Action) bool { return a.Verb == VerbIssue || a.Verb == VerbRestore })
}

// StartOf says when a kubelet that runs was started, by the clock as it is now, and
// whether it has had the time for what it does once after its start. running is false
// for one that does not run.
func StartOf(ctx context.Context, h host.Host, unit string) (start time.Time, hadTime, running bool, err error) {
	st, err := h.Unit(ctx, unit)
	if err != nil || st.ActiveState != "active" {
		return start, false, false, err
	}
	return h.Now().Add(-st.ActiveFor), st.ActiveFor >= registers, true, nil
}
