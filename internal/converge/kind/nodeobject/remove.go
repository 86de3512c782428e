package nodeobject

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
)

// Remove implements kind.Remover: a label that berth set goes, or becomes what it
// was. One that somebody else has changed since stays, and so does the Node.
func (Kind) Remove(ctx context.Context, v *kind.View, t *kind.Task, id string, e ledger.Entry) error {
	name, key, isLabel := strings.Cut(strings.TrimPrefix(id, "node:"), "/")
	if v.Offline {
		return leaveToFirstBoot(t, isLabel)
	}
	if renamed(v, name) {
		return nil
	}
	o, err := kind.LookAtNode(ctx, v, credentialOf(v, name), name)
	if err != nil {
		return err
	}
	if o.Sight == kind.NodeUnknown {
		t.Forget = nil
	}
	if !isLabel || e.Was == nil {
		return nil
	}
	switch o.Sight {
	case kind.NodeUnjoined:
		if n, ok := v.State.Lookup(desired.NodeObjectID(name)).(*desired.NodeObject); ok && rejoins(v, n.Kubeconfig) {
			takeBackLater(t, o, n, key, e)
		}
	case kind.NodeUnknown:
		t.Remarks = append(t.Remarks, notLookedAt(o, name, key))
	case kind.NodePresent:
		takeBack(t, o, name, key, e)
		if v.State.Lookup(desired.NodeObjectID(name)) == nil {
			beforeTheCredential(v, t)
		}
	}
	return nil
}

// beforeTheCredential patches the Node while all is there of which its credential is made: a
// plugin is asked again when its token ends. What fails then is tried when all else is done;
// after one failure nothing more is tried before that, so that a server that has gone since the
// plan holds up the machine once.
func beforeTheCredential(v *kind.View, t *kind.Task) {
	patch := t.Remote
	if patch == nil {
		return
	}
	fails := v.Shared("labels before the credential", func() any { return new(bool) }).(*bool) // Before runs one by one
	done := false
	t.Before = func(ctx context.Context) error {
		if !*fails {
			done = patch(ctx) == nil
			*fails = !done
		}
		return nil
	}
	t.Remote = func(ctx context.Context) error {
		if done {
			return nil
		}
		return patch(ctx)
	}
}

func notLookedAt(o *kind.OwnNode, name, key string) string {
	return fmt.Sprintf("label %s of Node %s is no longer wanted and was not looked at: %v", key, name, o.Err)
}

// leaveToFirstBoot keeps what the ledger knows until the cluster can be asked.
func leaveToFirstBoot(t *kind.Task, isLabel bool) error {
	t.Forget = nil
	if isLabel {
		t.Postpone(kind.VerbDelete, "removed from the Node on first boot")
	}
	return nil
}

// renamed says that the machine is another Node now, or a copy of a disk: then the
// old one is not its own to change.
func renamed(v *kind.View, name string) bool {
	return slices.ContainsFunc(v.State.Resources, func(r desired.Resource) bool {
		n, ok := r.(*desired.NodeObject)
		return ok && n.Name != name
	})
}

// credentialOf is the kubeconfig of a Node: the state's, or the one that the
// ledger remembers.
func credentialOf(v *kind.View, name string) string {
	id := desired.NodeObjectID(name)
	if n, ok := v.State.Lookup(id).(*desired.NodeObject); ok {
		return n.Kubeconfig
	}
	kubeconfig, _ := parseAsked(v.Ledger.Entries[string(id)].Owners[v.State.Owner])
	return kubeconfig
}

func takeBack(t *kind.Task, o *kind.OwnNode, name, key string, e ledger.Entry) {
	have, there := o.Node.Labels[key]
	was, before := strings.CutPrefix(e.Was.Value, "=")
	switch {
	case !there || before && have == was:
		return
	case !e.Set(have):
		t.Kept = append(t.Kept, fmt.Sprintf("label %s of Node %s is no longer wanted and is kept: it is %q, and berth had set it to %q", key, name, have, e.Applied.Value))
		return
	}
	set := map[string]*string{key: nil}
	if before {
		set[key] = &was
		t.Act(kind.VerbRestore, fmt.Sprintf("label %s is %q, was %q before berth", key, have, was), kind.DisruptNone)
	} else {
		t.Act(kind.VerbDelete, "label "+key+" is no longer wanted", kind.DisruptNone)
	}
	t.Remote = func(ctx context.Context) error { return patch(ctx, o, name, set) }
}
