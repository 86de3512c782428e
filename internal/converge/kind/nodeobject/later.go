package nodeobject

import (
	"context"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
)

// correctLater has the Node looked at beside the start of kubelet, when the credential is
// in force. kubelet gives labels and taints only to a Node that it creates: of one that
// it finds it sets the names of the machine, its zone and the like (kubelet_node_status.go,
// updateDefaultLabels).
func correctLater(v *kind.View, t *kind.Task, n *desired.NodeObject, o *kind.OwnNode) {
	t.LiveAfter = append(t.LiveAfter, desired.ClientCertificateID(n.Kubeconfig))
	t.BestEffort = &kind.BestEffort{ID: t.ID, Verb: kind.VerbCheck, After: []desired.ID{kind.AnnounceID},
		Do: func(ctx context.Context) error { o.LookAgain(ctx); return nil }}
	t.Last = func(ctx context.Context, t *kind.Task) error {
		switch o.LookAgain(ctx); o.Sight {
		case kind.NodeUnknown:
			t.Remarks = append(t.Remarks, notCompared(n, o))
			return nil
		case kind.NodePresent:
			t.Remarks = append(t.Remarks, differences(n, nil, o.Node.Taints)...)
			correct(t, n, o)
			unlessItWent(t, o)
		case kind.NodeUnjoined:
			if o.Err != nil {
				return nil
			}
		}
		learn(v, t, n, o)
		return nil
	}
}

// takeBackLater is the end of a label on a machine that joins the same cluster again. In
// another one the Node of that name never had it of berth.
func takeBackLater(t *kind.Task, o *kind.OwnNode, n *desired.NodeObject, key string, e ledger.Entry) {
	t.LiveAfter = append(t.LiveAfter, desired.ClientCertificateID(n.Kubeconfig))
	t.Last = func(ctx context.Context, t *kind.Task) error {
		switch o.LookAgain(ctx); o.Sight {
		case kind.NodeUnknown:
			t.Forget, t.Remarks = nil, append(t.Remarks, notLookedAt(o, n.Name, key))
		case kind.NodePresent:
			takeBack(t, o, n.Name, key, e)
			unlessItWent(t, o)
		}
		return nil
	}
}

// unlessItWent lets a patch fail only while the Node is the one that was looked at: kubelet
// gives the labels to one that it creates after that has gone.
func unlessItWent(t *kind.Task, o *kind.OwnNode) {
	patch := t.Remote
	if patch == nil {
		return
	}
	t.Remote = func(ctx context.Context) error {
		err := patch(ctx)
		if err == nil {
			return nil
		}
		if now, away := o.Session.Get(ctx); away == nil && (now == nil || now.UID != o.Node.UID) {
			return nil
		}
		return err
	}
}
