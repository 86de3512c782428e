package rollout

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/internal/apiserver"
)

const (
	namespace = "kube-system"
	// TurnFor is how long a turn counts after it was taken or renewed, as published.
	TurnFor = 10 * time.Minute
	// look is between two looks at Leases of others: a watch may be missing.
	look = 30 * time.Second
	// releases is how often a turn is tried to be given back.
	releases = 3
)

// ErrLost is the answer when a turn was not renewed in time, or somebody else has
// it.
var ErrLost = errors.New("the turn is lost")

// Leases are the API server's.
type Leases interface {
	GetLease(ctx context.Context, namespace, name string) (*coordination.Lease, error)
	CreateLease(context.Context, *coordination.Lease) (*coordination.Lease, error)
	UpdateLease(context.Context, *coordination.Lease) (*coordination.Lease, error)
}

// Turns let no more than Most nodes work at a time. Each turn is a Lease of its
// own with one holder, which makes the API server's check of versions all that is
// needed: no list of holders to keep clean, and the turn of a node that died is
// free when its own time has passed. With Most 1 it is the published Lease, named
// like the Secret; the others have "-2", "-3" … behind it.
//
// How long a turn still counts is told by the time in the Lease and the clock of who
// looks, and by what it has seen itself while it waits, which no clock misleads: a turn that
// it saw taken or renewed counts for its whole time, and one that it did not see so for no
// longer than that. Who comes new goes by clocks alone: one that is ahead by more than three
// quarters of TurnFor takes the turn of a node that works.
type Turns struct {
	Leases Leases
	// Name is the Secret's; Owner, if set, refers to the Secret itself, with which the
	// Leases go. It is asked when a Lease is made, and may know none.
	Name  string
	Owner func() *meta.OwnerReference
	// Holder is this node's host name.
	Holder string
	// Most is maxUnavailable; less than 1 means 1.
	Most int
	// Follow, if set, tells of changes of a Lease until ctx ends: it saves waiting, and
	// is called only for as long as there is something to wait for.
	Follow func(ctx context.Context, name string, changed func())
}

// sights are the turns as one who waits has seen them, by slot.
type sights map[int]sight

// sight is a turn as it was seen.
type sight struct {
	// holder is another node; "" is a free turn.
	holder string
	renew  time.Time
	// at is when it was first seen so, or was seen taken or renewed.
	at      time.Time
	renewed bool
}

// Take waits until this node has a turn. One that it has already, from before a
// restart, is renewed. The error is ctx's, with the last one of the API server.
func (t *Turns) Take(ctx context.Context) error {
	next := apiserver.Intervals(time.Second, look)
	var changed <-chan struct{}
	seen := sights{}
	for {
		held, pause, err := t.try(ctx, seen)
		if held {
			return nil
		}
		if changed == nil {
			following, end := context.WithCancel(ctx)
			defer end()
			changed = t.follow(following)
		}
		if err != nil {
			pause = next.NextBackOff()
		} else {
			next.Reset()
		}
		if !wait(ctx, pause, changed) {
			return errors.Join(fmt.Errorf("wait for a turn of %s: %w", t.Name, context.Cause(ctx)), err)
		}
	}
}

// follow wakes whoever waits for a change of one of the Leases.
func (t *Turns) follow(ctx context.Context) <-chan struct{} {
	changed := make(chan struct{}, 1)
	if t.Follow == nil {
		return changed
	}
	for slot := range t.most() {
		go t.Follow(ctx, t.slot(slot), func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	}
	return changed
}

func wait(ctx context.Context, pause time.Duration, changed <-chan struct{}) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Keep renews the turn until ctx ends. ErrLost: another node may work by now.
func (t *Turns) Keep(ctx context.Context) error {
	next := apiserver.Intervals(time.Second, TurnFor/10)
	end := time.Now().Add(TurnFor)
	for pause := TurnFor / 4; apiserver.Pause(ctx, min(pause, time.Until(end))); {
		began := time.Now()
		held, err := t.renew(ctx)
		switch {
		case held:
			next.Reset()
			end, pause = began.Add(TurnFor), TurnFor/4
		case err == nil:
			return fmt.Errorf("%w: lease %s is no longer of this node", ErrLost, t.Name)
		case !time.Now().Before(end):
			return fmt.Errorf("%w: lease %s could not be renewed: %w", ErrLost, t.Name, err)
		default:
			pause = next.NextBackOff()
		}
	}
	return nil
}

// Release gives back what this node has.
func (t *Turns) Release(ctx context.Context) error {
	var errs []error
	for slot := range t.most() {
		if err := t.release(ctx, slot); err != nil {
			errs = append(errs, fmt.Errorf("release lease %s: %w", t.slot(slot), err))
		}
	}
	return errors.Join(errs...)
}

// release gives a turn back if it is this node's. A conflict may be with a renewal of its own
// that was under way: it looks again.
func (t *Turns) release(ctx context.Context, slot int) (err error) {
	for range releases {
		var l *coordination.Lease
		l, err = t.Leases.GetLease(ctx, namespace, t.slot(slot))
		if err == nil && holder(l) == t.Holder {
			l.Spec = coordination.LeaseSpec{}
			_, err = t.Leases.UpdateLease(ctx, l)
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// try renews the turn that this node has, else takes a free one. pause is until
// the first of the others can be free.
func (t *Turns) try(ctx context.Context, seen sights) (held bool, pause time.Duration, err error) {
	held, err = t.renew(ctx)
	if held || err != nil {
		return held, 0, err
	}
	pause = look
	for i := range t.most() {
		slot := (i + t.first()) % t.most()
		l, err := t.get(ctx, slot)
		if err != nil {
			return false, 0, err
		}
		if left := seen.remaining(slot, l); left > 0 {
			pause = min(pause, left)
			continue
		}
		held, err = t.put(ctx, l)
		if held || err != nil {
			return held, 0, err
		}
	}
	return false, pause, nil
}

// renew renews the turn that this node has; it has none if held is false.
func (t *Turns) renew(ctx context.Context) (held bool, err error) {
	for slot := range t.most() {
		l, err := t.get(ctx, slot)
		if err != nil {
			return false, err
		}
		if holder(l) == t.Holder {
			return t.put(ctx, l)
		}
	}
	return false, nil
}

// get reads a Lease; one that does not exist has no version.
func (t *Turns) get(ctx context.Context, slot int) (*coordination.Lease, error) {
	l, err := t.Leases.GetLease(ctx, namespace, t.slot(slot))
	if apierrors.IsNotFound(err) {
		l = &coordination.Lease{ObjectMeta: meta.ObjectMeta{Namespace: namespace, Name: t.slot(slot)}}
		l.OwnerReferences = t.owners()
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read lease %s: %w", t.slot(slot), err)
	}
	return l, nil
}

func (t *Turns) owners() []meta.OwnerReference {
	if t.Owner == nil {
		return nil
	}
	if o := t.Owner(); o != nil {
		return []meta.OwnerReference{*o}
	}
	return nil
}

// put makes this node the holder, unless another was faster.
func (t *Turns) put(ctx context.Context, l *coordination.Lease) (held bool, err error) {
	now, seconds, write := meta.NowMicro(), int32(TurnFor/time.Second), t.Leases.UpdateLease
	if l.ResourceVersion == "" {
		write = t.Leases.CreateLease
	}
	if holder(l) != t.Holder {
		l.Spec.AcquireTime = &now
	}
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = &t.Holder, &seconds, &now
	_, err = write(ctx, l)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("write lease %s: %w", l.Name, err)
	}
	return true, nil
}

func (t *Turns) most() int { return max(t.Most, 1) }

// first is where this node looks first: nodes that come at once should not all try
// the same turn.
func (t *Turns) first() int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.Holder))
	return int(h.Sum32() % uint32(t.most()))
}

func (t *Turns) slot(i int) string {
	if i == 0 {
		return t.Name
	}
	return t.Name + "-" + strconv.Itoa(i+1)
}

func holder(l *coordination.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// remaining is how long another's turn still counts; a Lease that does not say
// counts no longer.
func (seen sights) remaining(slot int, l *coordination.Lease) time.Duration {
	if holder(l) == "" || l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
		seen[slot] = sight{}
		return 0
	}
	counts := time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	s := seen.look(slot, holder(l), l.Spec.RenewTime.Time)
	left := counts - time.Since(s.at)
	if s.renewed {
		return left
	}
	return min(left, time.Until(s.renew.Add(counts)))
}

// look notes a turn as it is now. A time that is earlier is a change, too: a clock may have
// been set back, or be another's.
func (seen sights) look(slot int, by string, renew time.Time) sight {
	s, known := seen[slot]
	if !known || s.holder != by || !renew.Equal(s.renew) {
		s = sight{holder: by, renew: renew, at: time.Now(), renewed: known}
	}
	seen[slot] = s
	return s
}
