package reconcile

import (
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
	// former is what was said before, as long as the document's units have yet to stay
	// up.
	former *nodeStatus
	// instead is said where the Node still says denied, the checksum of a document that is
	// not in force, and nothing is known to be.
	instead *nodeStatus
	denied  string
}

// on is what a status says on a Node.
func (s nodeStatus) on(n *core.Node) nodeStatus {
	if s.checksum == "" && s.instead != nil && n.Annotations[AppliedAnnotation] == s.denied {
		// No news: neither an event nor the end of a joining.
		s.checksum, s.labels, s.former = s.instead.checksum, s.instead.labels, s.instead
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
		there := slices.ContainsFunc(n.Status.Conditions, func(have core.NodeCondition) bool { return have.Type == c.Type })
		if c.Type != now.Type && there && !hasCondition(n, c) {
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
	for _, have := range n.Status.Conditions {
		if have.Type == c.Type {
			return have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message
		}
	}
	return false
}

// condition is what the Node's condition is to say.
func (r *Reconciler) condition(status core.ConditionStatus, reason, message string) {
	now := meta.NewTime(r.o.Host.Now())
	r.setStatus(func(s *nodeStatus) {
		s.condition = core.NodeCondition{Type: conditionTypes[r.owner], Status: status, Reason: reason, Message: cut(message, 4000),
			LastHeartbeatTime: now, LastTransitionTime: now}
	})
}
