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

// unseen is what the ledger holds of a label before its Node was looked at.
const unseen = "?"

// claimLabels enters whose each label is, and what it was before. What it was on the Node of
// another cluster counts for nothing.
func claimLabels(v *kind.View, t *kind.Task, n *desired.NodeObject, o *kind.OwnNode) error {
	unjoined := o.Sight == kind.NodeUnjoined
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		id, before := labelID(n.Name, key), unseen
		if !unjoined {
			before = was(o, key)
		}
		if err := v.ClaimLive(t, id, n.Labels[key], before, kind.Equal); err != nil {
			return err
		}
		if v.Ledger.Ours(id) && unjoined && !rejoins(v, n.Kubeconfig) {
			claimAgain(t, id, n.Labels[key], unseen)
		}
	}
	if !unjoined {
		learn(v, t, n, o)
	}
	return nil
}

// learn enters what labels were before that no run has seen yet. Those that are as berth asks,
// or asked, kubelet gave to the Node when it created it.
func learn(v *kind.View, t *kind.Task, n *desired.NodeObject, o *kind.OwnNode) {
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		id := labelID(n.Name, key)
		e, known := v.Ledger.Entries[id]
		isNew := slices.ContainsFunc(t.Claims, func(c kind.Claim) bool { return c.ID == id && c.Was == unseen })
		if !isNew && (e.Was == nil || e.Was.Value != unseen) {
			continue
		}
		before := was(o, key)
		if have := strings.TrimPrefix(before, "="); have == n.Labels[key] || known && e.Set(have) {
			before = ""
		}
		claimAgain(t, id, n.Labels[key], before)
	}
}

// claimAgain has the ledger hold something else of before.
func claimAgain(t *kind.Task, id, asked, was string) {
	claims := slices.Clone(t.Claims)
	i := slices.IndexFunc(claims, func(c kind.Claim) bool { return c.ID == id })
	if i < 0 {
		i, claims = len(claims), append(claims, kind.Claim{ID: id, Asked: asked})
	}
	claims[i].Was, claims[i].Again = was, true
	t.Claims = claims
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

// rejoins says whether the credential that is missing is of the cluster that the ledger's
// was of.
func rejoins(v *kind.View, kubeconfig string) bool {
	if c, ok := v.State.Lookup(desired.ClientCertificateID(kubeconfig)).(*desired.ClientCertificate); ok {
		return v.Ledger.Entries[string(c.ID())].Owners[v.State.Owner] == c.Holder()
	}
	q, e := v.Expected(kubeconfig), v.Ledger.Entries[kubeconfig]
	return q != nil && q.Sum() != "" && q.Sum() == e.Applied.Sum
}
