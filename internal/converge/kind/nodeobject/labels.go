package nodeobject

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/desired"
)

// claimLabels enters whose each label is, and what it was before.
func claimLabels(v *kind.View, t *kind.Task, n *desired.NodeObject, o *kind.OwnNode) error {
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		if err := v.ClaimLive(t, labelID(n.Name, key), n.Labels[key], was(o, key), kind.Equal); err != nil {
			return err
		}
	}
	return nil
}

// correct plans the patch of labels that differ.
func correct(t *kind.Task, n *desired.NodeObject, o *kind.OwnNode) {
	set, reasons := map[string]*string{}, []string{}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		want := n.Labels[key]
		have, ok := o.Node.Labels[key]
		switch {
		case !ok:
			reasons = append(reasons, fmt.Sprintf("label %s is absent, want %q", key, want))
		case have != want:
			reasons = append(reasons, fmt.Sprintf("label %s is %q, want %q", key, have, want))
		default:
			continue
		}
		set[key] = &want
	}
	if len(set) == 0 {
		return
	}
	t.Act(kind.VerbUpdate, strings.Join(reasons, "; "), kind.DisruptNone)
	t.Remote = func(ctx context.Context) error { return patch(ctx, o, n.Name, set) }
}

// was is what the ledger remembers of a label: "" where there was none, else "="
// and its value.
func was(o *kind.OwnNode, key string) string {
	if o.Sight != kind.NodePresent {
		return ""
	}
	value, ok := o.Node.Labels[key]
	if !ok {
		return ""
	}
	return "=" + value
}

// patch changes labels and checks the answer: something between may have changed
// them.
func patch(ctx context.Context, o *kind.OwnNode, name string, set map[string]*string) error {
	now, err := o.Session.Label(ctx, o.Node.UID, set)
	if err != nil {
		return &Error{Node: name, What: "set labels", Err: err}
	}
	for key, want := range set {
		have, ok := now.Labels[key]
		if want == nil && ok || want != nil && (!ok || have != *want) {
			return &Error{Node: name, What: "set labels", Remedy: "Look for an admission webhook that changes Nodes: kubectl get mutatingwebhookconfigurations.",
				Err: fmt.Errorf("the API server took the request, and label %s is %q", key, have)}
		}
	}
	return nil
}
