// Package event posts events about the agent's own Node: what a person sees in
// `kubectl describe node`.
package event

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/internal/apiserver"
)

const (
	// namespace is where events about objects without one are.
	namespace = "default"
	// component is the source that readers of the published agent's events know.
	component = "gardener-node-agent"
	// longest is the API server's limit for a message, in bytes.
	longest = 1024
	// same is how long a repetition counts for the event that was posted first;
	// often is between two patches of one event.
	same  = time.Hour
	often = time.Minute
	// waiting is how many are kept while the API server is away, atTheEnd how long
	// the end of the agent waits for them.
	waiting  = 256
	atTheEnd = 2 * time.Second
)

// Calls are the API server's.
type Calls interface {
	CreateEvent(context.Context, *core.Event) (*core.Event, error)
	PatchEvent(ctx context.Context, namespace, name string, patch []byte) error
}

// Recorder posts events while it runs. Telling it something never waits.
type Recorder struct {
	calls  Calls
	node   string
	queue  chan told
	posted map[fact]*record
}

// fact is what an event says; the same fact again is the same event.
type fact struct{ kind, reason, message string }

type told struct {
	fact
	at time.Time
}

// record is an event that the API server has.
type record struct {
	name         string
	count        int32
	first, patch time.Time
}

// New makes a recorder of events about a Node.
func New(calls Calls, node string) *Recorder {
	return &Recorder{calls: calls, node: node, queue: make(chan told, waiting), posted: map[fact]*record{}}
}

// Normal tells of something that is as it should be.
func (r *Recorder) Normal(reason, message string) { r.tell(core.EventTypeNormal, reason, message) }

// Warning tells of something that somebody should know.
func (r *Recorder) Warning(reason, message string) { r.tell(core.EventTypeWarning, reason, message) }

func (r *Recorder) tell(kind, reason, message string) {
	t := told{fact{kind, reason, cut(message)}, time.Now()}
	select {
	case r.queue <- t:
	default:
		slog.Warn("event dropped, too many wait for the API server", "reason", reason, "message", message)
	}
}

func cut(message string) string {
	if len(message) <= longest {
		return message
	}
	const more = " …"
	return strings.ToValidUTF8(message[:longest-len(more)], "") + more
}

// Run posts what it is told, in order, until ctx ends; what waits then is tried
// once more: why an agent ends may be among it. While the API server is away it
// tries again; what the server refuses is dropped with a line in the log.
func (r *Recorder) Run(ctx context.Context) error {
	for {
		select {
		case t := <-r.queue:
			if !r.deliver(ctx, t) {
				r.finish(ctx, &t)
				return nil
			}
		case <-ctx.Done():
			r.finish(ctx, nil)
			return nil
		}
	}
}

// deliver is false when ctx ended first.
func (r *Recorder) deliver(ctx context.Context, t told) bool {
	next := apiserver.Intervals(time.Second, time.Minute)
	for {
		err := r.post(ctx, t)
		if err == nil {
			return true
		}
		if refused(err) {
			slog.Warn("event refused", "reason", t.reason, "message", t.message, "error", err)
			return true
		}
		if !apiserver.Pause(ctx, next.NextBackOff()) {
			return false
		}
	}
}

// finish posts what is left, as far as the server takes it soon.
func (r *Recorder) finish(ctx context.Context, first *told) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), atTheEnd)
	defer cancel()
	for t := first; ; t = nil {
		if t == nil {
			select {
			case next := <-r.queue:
				t = &next
			default:
				return
			}
		}
		if err := r.post(ctx, *t); err != nil {
			slog.Warn("event lost", "reason", t.reason, "message", t.message, "error", err)
			return
		}
	}
}

// refused says whether another try would end alike.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err)
}

func (r *Recorder) post(ctx context.Context, t told) error {
	old := r.posted[t.fact]
	if old == nil || t.at.Sub(old.first) > same {
		return r.create(ctx, t)
	}
	if t.at.Sub(old.patch) < often {
		old.count++
		return nil
	}
	patch, err := json.Marshal(map[string]any{"count": old.count + 1, "lastTimestamp": meta.NewTime(t.at)})
	if err != nil {
		return fmt.Errorf("write patch of an event: %w", err)
	}
	if err := r.calls.PatchEvent(ctx, namespace, old.name, patch); apierrors.IsNotFound(err) {
		return r.create(ctx, t)
	} else if err != nil {
		return err
	}
	old.count++
	old.patch = t.at
	return nil
}

func (r *Recorder) create(ctx context.Context, t told) error {
	for f, old := range r.posted {
		if t.at.Sub(old.first) > same {
			delete(r.posted, f)
		}
	}
	e, err := r.calls.CreateEvent(ctx, r.event(t))
	if err != nil && !apierrors.IsAlreadyExists(err) { // the answer to the first try was lost
		return err
	}
	r.posted[t.fact] = &record{name: cmp.Or(e.Name, r.name(t)), count: 1, first: t.at, patch: t.at}
	return nil
}

func (r *Recorder) name(t told) string { return fmt.Sprintf("%s.%x", r.node, t.at.UnixNano()) }

func (r *Recorder) event(t told) *core.Event {
	at := meta.NewTime(t.at)
	return &core.Event{
		ObjectMeta: meta.ObjectMeta{Namespace: namespace, Name: r.name(t)},
		// As in kubelet's own events, the uid is the Node's name: readers look for both.
		InvolvedObject: core.ObjectReference{Kind: "Node", APIVersion: "v1", Name: r.node, UID: types.UID(r.node)},
		Type:           t.kind, Reason: t.reason, Message: t.message,
		Source:         core.EventSource{Component: component, Host: r.node},
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}
}
