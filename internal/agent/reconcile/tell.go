package reconcile

import (
	"errors"
	"strings"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
)

// The conditions say whether the machine is as the document of an owner says.
const (
	ConditionType     core.NodeConditionType = "OperatingSystemConfigApplied"
	ConditionTypeAKS  core.NodeConditionType = "AKSNodeConfigApplied"
	ConditionTypeNode core.NodeConditionType = "NodeConfigApplied"
)

var conditionTypes = map[desired.Owner]core.NodeConditionType{
	desired.OwnerOSC: ConditionType, desired.OwnerAKS: ConditionTypeAKS, desired.OwnerNode: ConditionTypeNode,
}

// concern is what an error is about, and how that is called in events and in the
// condition.
type concern struct{ name, reason string }

var (
	applying  = concern{"applying", "ApplyFailed"}
	repairing = concern{"repairing", "RepairFailed"}
	keeping   = concern{"repairing the agent's own files", "RepairFailed"}
	updating  = concern{"updating the agent", "AgentUpdateFailed"}
)

// tell makes an error known on the Node: its code, its cause and its remedy. The same
// error is told once.
func (r *Reconciler) tell(c concern, err error) {
	code, cause, remedy := r.o.Explain(err)
	text := code + ": " + cause + " — " + remedy
	if r.said[c] == text {
		return
	}
	r.said[c] = text
	r.o.Log.Error(c.name, "code", code, "error", cause, "hint", remedy)
	r.o.Events.Warning(c.reason, text)
	r.say(r.newCondition(core.ConditionFalse, c.reason, text))
}

var errGone = errors.New("the Secret that the documents come in does not exist")

// tellLack tells once that the Secret has no document. What is in force stays, so that the
// condition does.
func (r *Reconciler) tellLack(err error) {
	code, cause, remedy := r.o.Explain(&exitcode.Error{Err: err, Remedy: "Create the Secret with a document: until then the last one stays in force. To end that, run berth agent reset."})
	if text := code + ": " + cause + " — " + remedy; r.lacked != text {
		r.lacked = text
		r.o.Log.Error("no document", "code", code, "error", cause, "hint", remedy)
		r.o.Events.Warning("NoDocument", text)
	}
}

// settled takes back what was told of a concern. What another one says stays.
func (r *Reconciler) settled(c concern) {
	delete(r.said, c)
	for other, text := range r.said {
		r.say(r.newCondition(core.ConditionFalse, other.reason, text))
		return
	}
	applied := r.newCondition(core.ConditionTrue, "Applied", "the machine is as the document says")
	switch {
	case r.inForce:
		r.say(applied)
	case r.looked && r.isLastGood() && !r.record.Half:
		r.setStatus(func(s *nodeStatus) { s.over = &over{c.reason, applied} })
	}
}

// isLastGood says whether the machine is kept as the last good document says, and not as one
// that came half-way: after a start, as long as the one that is wanted waits or is not there.
func (r *Reconciler) isLastGood() bool { return r.current != nil && r.current.Sum == r.good.sum }

// cut bounds a text as the API server does.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-3], "") + "..."
}
