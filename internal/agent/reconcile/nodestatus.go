package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AppliedAnnotation is what a cluster manager waits for on the Node, as published.
const AppliedAnnotation = "checksum/cloud-config-data"

// nodeStatus is what the Node is to say of the machine. A worker of its own writes it:
// an API server that is away holds up no repair.
type nodeStatus struct {
	// checksum is of the document that is in force; "" while none is known to be.
	checksum  string
	labels    map[string]string
	condition core.NodeCondition
	// over is said in place of a condition of its reason, this process's or one that the
	// Node has of the process before; nil is nothing.
	over *over
	// former is what was said before, as long as the document's units have yet to stay
	// up.
	former *nodeStatus
	// instead is said where the Node still says denied, the checksum of a document that is
	// not in force, and nothing is known to be.
	instead *nodeStatus
	denied  string
}

// over is a failure that there is no more, and what is said then.
type over struct {
	reason string
	now    core.NodeCondition
}

// on is what a status says on a Node.
func (s nodeStatus) on(n *core.Node) nodeStatus {
	if s.checksum == "" && s.instead != nil && n.Annotations[AppliedAnnotation] == s.denied {
		// No news: neither an event nor the end of a joining.
		s.checksum, s.labels, s.former = s.instead.checksum, s.instead.labels, s.instead
	}
	if s.over != nil && cmp.Or(s.condition.Reason, conditionOn(n, s.over.now.Type).Reason) == s.over.reason {
		s.condition = s.over.now
	}
	return s
}

// setStatus changes what the Node is to say.
func (r *Reconciler) setStatus(change func(*nodeStatus)) {
	r.mu.Lock()
	change(&r.status)
	r.mu.Unlock()
	r.statuses.Add(workStatus)
}

// writeStatus makes the Node say it. It writes only what is not there yet.
func (r *Reconciler) writeStatus(ctx context.Context) error {
	r.mu.Lock()
	s := r.status
	r.mu.Unlock()
	n := r.o.Node.Get()
	if n == nil {
		return nil
	}
	s = s.on(n)
	var errs []error
	if s.checksum != "" {
		// Who waits for the checksum finds the labels with it.
		errs = append(errs, r.label(ctx, n, s.labels), r.applied(ctx, n, s))
	}
	if s.condition.Type != "" && !hasCondition(n, s.condition) {
		errs = append(errs, r.o.Node.Condition(ctx, s.condition))
	}
	if s.condition.Type != "" {
		errs = append(errs, r.unfollowed(ctx, n, s.condition))
	}
	return errors.Join(errs...)
}

// unfollowed says of documents of another kind, which this source brought once, that nobody
// follows them.
func (r *Reconciler) unfollowed(ctx context.Context, n *core.Node, now core.NodeCondition) error {
	var errs []error
	for _, owner := range r.o.Owners {
		c := core.NodeCondition{Type: conditionTypes[owner], Status: core.ConditionUnknown, Reason: "NotFollowed",
			Message: "the agent follows documents of another kind", LastHeartbeatTime: now.LastHeartbeatTime, LastTransitionTime: now.LastTransitionTime}
		if c.Type != now.Type && conditionOn(n, c.Type).Type != "" && !hasCondition(n, c) {
			errs = append(errs, r.o.Node.Condition(ctx, c))
		}
	}
	return errors.Join(errs...)
}

func (r *Reconciler) applied(ctx context.Context, n *core.Node, s nodeStatus) error {
	if s.former == nil {
		if err := r.o.Joined(); err != nil {
			return err
		}
	}
	if !r.o.Published {
		return nil
	}
	if n.Annotations[AppliedAnnotation] != s.checksum {
		if err := r.o.Node.Patch(ctx, nil, map[string]string{AppliedAnnotation: s.checksum}); err != nil {
			return err
		}
	} else if r.announced == "" {
		r.announced = s.checksum // by the process before this one
	}
	if s.former != nil || r.announced == s.checksum {
		return nil
	}
	r.announced = s.checksum
	r.o.Events.Normal("OSCApplied", "operating system config with checksum "+s.checksum+" is in force")
	return nil
}

// label sets each label by itself: a cluster may refuse some to the agent. What it
// refused is told once, and not asked for again.
func (r *Reconciler) label(ctx context.Context, n *core.Node, labels map[string]string) error {
	var errs []error
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		v := labels[k]
		if have, ok := n.Labels[k]; ok && have == v {
			continue
		}
		if was, ok := r.refused[k]; ok && was == v {
			continue
		}
		err := r.o.Node.Patch(ctx, map[string]string{k: v}, nil)
		if apierrors.IsForbidden(err) {
			r.refused[k] = v
			text := fmt.Sprintf("the cluster refuses the label %s=%s: set it yourself, or allow it to node agents and restart this one", k, v)
			r.o.Log.Warn(text, "error", err)
			r.o.Events.Warning("LabelRefused", text)
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func hasCondition(n *core.Node, c core.NodeCondition) bool {
	have := conditionOn(n, c.Type)
	return have.Type == c.Type && have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message
}

// conditionOn is a Node's condition of a type; the zero one where it has none.
func conditionOn(n *core.Node, t core.NodeConditionType) core.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == t {
			return c
		}
	}
	return core.NodeCondition{}
}

func (r *Reconciler) newCondition(status core.ConditionStatus, reason, message string) core.NodeCondition {
	now := meta.NewTime(r.o.Host.Now())
	return core.NodeCondition{Type: conditionTypes[r.owner], Status: status, Reason: reason, Message: cut(message, 4000),
		LastHeartbeatTime: now, LastTransitionTime: now}
}

// say makes a condition the Node's.
func (r *Reconciler) say(c core.NodeCondition) {
	r.setStatus(func(s *nodeStatus) { s.condition, s.over = c, nil })
}
