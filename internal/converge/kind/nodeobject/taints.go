package nodeobject

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/desired"
)

// taintID is what identifies a taint on a Node.
type taintID struct{ key, effect string }

func byID(taints []desired.Taint) map[taintID]desired.Taint {
	out := map[taintID]desired.Taint{}
	for _, t := range taints {
		out[taintID{t.Key, t.Effect}] = t
	}
	return out
}

// asked is what the ledger remembers of a contract's wish: where the credential is,
// and the taints.
func asked(kubeconfig string, taints []desired.Taint) string {
	all := make([]string, len(taints))
	for i, t := range taints {
		all[i] = t.String()
	}
	slices.Sort(all)
	return kubeconfig + " " + strings.Join(all, ",")
}

// parseAsked undoes asked.
func parseAsked(text string) (kubeconfig string, taints []desired.Taint) {
	kubeconfig, list, _ := strings.Cut(text, " ")
	taints, _ = desired.ParseTaints(list)
	return kubeconfig, taints
}

// compareTaints reports taints that changed in the contract and not on the Node: a
// node may not change its own. One that the Node registered with and that somebody
// took away since is as it should be: that is how others say that they are done.
// The ledger takes up the new wish when the Node has it.
func compareTaints(v *kind.View, t *kind.Task, n *desired.NodeObject, o *kind.OwnNode) error {
	var before []desired.Taint
	mine, known := v.Ledger.Entries[string(n.ID())].Owners[v.State.Owner]
	if known {
		_, before = parseAsked(mine)
	}
	wish := n.Taints
	if o.Sight == kind.NodePresent {
		if remarks := differences(n, before, o.Node.Taints); len(remarks) > 0 {
			t.Remarks, wish = append(t.Remarks, remarks...), before
		}
	}
	return v.ClaimLive(t, string(n.ID()), asked(n.Kubeconfig, wish), "", func(string, string) bool { return true })
}

// differences are the taints that an operator has to change.
func differences(n *desired.NodeObject, before, on []desired.Taint) []string {
	var out []string
	was, want, have := byID(before), byID(n.Taints), byID(on)
	for id, w := range want {
		if was[id] == w || have[id] == w {
			continue
		}
		out = append(out, fmt.Sprintf("Node %s lacks the taint %s; an operator may change that: kubectl taint nodes %s --overwrite %s", n.Name, w, n.Name, w))
	}
	for id, w := range was {
		if _, wanted := want[id]; wanted || have[id] != w {
			continue
		}
		out = append(out, fmt.Sprintf("Node %s still has the taint %s; an operator may change that: kubectl taint nodes %s %s:%s-", n.Name, w, n.Name, w.Key, w.Effect))
	}
	slices.Sort(out)
	return out
}
