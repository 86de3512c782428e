package event

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// server keeps what it was sent; err is its next answers.
type server struct {
	events []*core.Event
	told   []string
	err    []error
}

func (s *server) next() (err error) {
	if len(s.err) > 0 {
		err, s.err = s.err[0], s.err[1:]
	}
	return err
}

func (s *server) CreateEvent(_ context.Context, e *core.Event) (*core.Event, error) {
	if err := s.next(); err != nil {
		return &core.Event{}, err
	}
	s.events = append(s.events, e)
	s.told = append(s.told, fmt.Sprintf("create %s %s: %s", e.Type, e.Reason, e.Message))
	return e, nil
}

func (s *server) PatchEvent(_ context.Context, namespace, name string, patch []byte) error {
	if err := s.next(); err != nil {
		return err
	}
	var p struct{ Count int }
	if err := json.Unmarshal(patch, &p); err != nil {
		return err
	}
	s.told = append(s.told, fmt.Sprintf("count %d of %s", p.Count, map[bool]string{true: "it", false: "another"}[namespace == "default" && name == s.events[0].Name]))
	return nil
}

func status(f func(schema.GroupResource, string) *apierrors.StatusError) error {
	return f(schema.GroupResource{Resource: "events"}, "e")
}

func TestEvents(t *testing.T) {
	away := errors.New("connection refused")
	for name, tc := range map[string]struct {
		answers []error
		tell    func(*Recorder)
		want    []string
	}{
		"both kinds": {tell: func(r *Recorder) { r.Normal("Applied", "all of it"); r.Warning("Broken", "one unit") },
			want: []string{"create Normal Applied: all of it", "create Warning Broken: one unit"}},
		"again at once": {tell: func(r *Recorder) { r.Warning("A", "b"); r.Warning("A", "b"); r.Warning("A", "b") },
			want: []string{"create Warning A: b"}},
		"again later": {tell: func(r *Recorder) {
			r.Warning("A", "b")
			time.Sleep(10 * time.Second)
			r.Warning("A", "b")
			time.Sleep(2 * time.Minute)
			r.Warning("A", "b")
		}, want: []string{"create Warning A: b", "count 3 of it"}},
		"again much later": {tell: func(r *Recorder) {
			r.Warning("A", "b")
			time.Sleep(2 * time.Hour)
			r.Warning("A", "b")
		}, want: []string{"create Warning A: b", "create Warning A: b"}},
		"forgotten by the server": {answers: []error{nil, status(apierrors.NewNotFound)}, tell: func(r *Recorder) {
			r.Warning("A", "b")
			time.Sleep(2 * time.Minute)
			r.Warning("A", "b")
		}, want: []string{"create Warning A: b", "create Warning A: b"}},
		"server away": {answers: []error{away, away, away}, tell: func(r *Recorder) { r.Normal("A", "b"); time.Sleep(time.Minute) },
			want: []string{"create Normal A: b"}},
		"refused": {answers: []error{apierrors.NewForbidden(schema.GroupResource{}, "e", away)}, tell: func(r *Recorder) { r.Normal("A", "b"); r.Normal("A", "c") },
			want: []string{"create Normal A: c"}},
		"answer lost": {answers: []error{away, status(apierrors.NewAlreadyExists)}, tell: func(r *Recorder) { r.Normal("A", "b"); r.Normal("A", "c") },
			want: []string{"create Normal A: c"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{err: tc.answers}
				r := New(s, "n1")
				ctx, cancel := context.WithCancel(t.Context())
				go func() { _ = r.Run(ctx) }()
				tc.tell(r)
				time.Sleep(5 * time.Second)
				cancel()
				synctest.Wait()
				if d := cmp.Diff(tc.want, s.told); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

func TestAnEventIsAboutTheNode(t *testing.T) {
	r := New(nil, "n1")
	e := r.event(told{fact{core.EventTypeWarning, "A", "b"}, time.Unix(1, 2)})
	if e.Namespace != "default" || e.InvolvedObject.Kind != "Node" || e.InvolvedObject.Name != "n1" || e.InvolvedObject.UID != "n1" ||
		e.Source.Component != "gardener-node-agent" || e.Count != 1 || !e.LastTimestamp.Time.Equal(time.Unix(1, 2)) {
		t.Errorf("%+v", e)
	}
}

func TestALongMessageIsCut(t *testing.T) {
	got := cut(strings.Repeat("ä", 2000))
	if len(got) > longest || !utf8.ValidString(got) || !strings.HasSuffix(got, " …") {
		t.Errorf("%d bytes, ends %q", len(got), got[len(got)-8:])
	}
}

func TestTellingNeverWaits(t *testing.T) {
	r := New(nil, "n1")
	for range 10 * waiting {
		r.Normal("A", "b")
	}
	if len(r.queue) != waiting {
		t.Errorf("%d wait", len(r.queue))
	}
}

// TestToldAtTheEnd: what was told just before the end is posted, the one on its way
// too, unless the server is away.
func TestToldAtTheEnd(t *testing.T) {
	away := errors.New("connection refused")
	for name, tc := range map[string]struct {
		answers []error
		want    []string
	}{
		"all":              {nil, []string{"create Normal A: b", "create Warning C: d"}},
		"one on its way":   {[]error{away}, []string{"create Normal A: b", "create Warning C: d"}},
		"the server stays": {[]error{away, away, away, away}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{err: tc.answers}
				r := New(s, "n1")
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				r.Normal("A", "b")
				r.Warning("C", "d")
				if len(tc.answers) == 0 {
					cancel()
				}
				go func() { ended <- r.Run(ctx) }()
				synctest.Wait()
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if d := cmp.Diff(tc.want, s.told); d != "" {
					t.Error(d)
				}
			})
		})
	}
}
