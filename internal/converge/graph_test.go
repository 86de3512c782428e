package converge

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// runGraph runs nodes a…e with given edges and returns the order in which they
// ran; the node named fail fails.
func runGraph(t *testing.T, workers int, pick func(int) int, edges map[desired.ID][]desired.ID, fail desired.ID) ([]desired.ID, error) {
	t.Helper()
	var mu sync.Mutex
	var order []desired.ID
	g := &graph{workers: workers, pick: pick, now: time.Now, tell: func(Span) {}}
	for _, id := range []desired.ID{"a", "b", "c", "d", "e"} {
		g.nodes = append(g.nodes, &node{id: id, after: edges[id], do: func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, id)
			if id == fail {
				return errors.New("broken")
			}
			return nil
		}})
	}
	err := g.run(t.Context())
	return order, err
}

func TestGraphOrder(t *testing.T) {
	edges := map[desired.ID][]desired.ID{"a": {"e"}, "b": {"a", "c"}, "d": {"b", "not in the graph"}}
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		order, err := runGraph(t, int(seed%5)+1, rng.IntN, edges, "")
		if err != nil {
			t.Fatal(err)
		}
		at := map[desired.ID]int{}
		for i, id := range order {
			at[id] = i
		}
		if len(order) != 5 || at["e"] > at["a"] || at["a"] > at["b"] || at["c"] > at["b"] || at["b"] > at["d"] {
			t.Fatalf("seed %d: order %v", seed, order)
		}
	}
}

// TestGraphBehind: who comes behind a unit's start comes when its program runs, or the start has
// ended without one; after a start that failed it does not come.
func TestGraphBehind(t *testing.T) {
	for name, c := range map[string]struct {
		tells bool
		fails error
		want  string
	}{
		"program runs":  {true, nil, "told second first"},
		"nothing told":  {false, nil, "first second"},
		"fails at once": {false, errors.New("broken"), "first"},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var order []string
			say := func(s string) {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, s)
			}
			second := make(chan struct{})
			g := &graph{workers: 2, now: time.Now, tell: func(Span) {}, nodes: []*node{
				{id: "second", behind: []desired.ID{"first", "not in the graph"}, do: func(context.Context) error {
					say("second")
					close(second)
					return nil
				}},
				{id: "first", do: func(ctx context.Context) error {
					if c.tells {
						say("told")
						host.Begun(ctx)()
						host.Begun(ctx)()
						<-second
					}
					say("first")
					return c.fails
				}},
			}}
			if err := g.run(t.Context()); (err != nil) != (c.fails != nil) {
				t.Fatal(err)
			}
			if got := strings.Join(order, " "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestGraphGoesOn with all that does not come after what failed.
func TestGraphGoesOn(t *testing.T) {
	var order []desired.ID
	do := func(id desired.ID) func(context.Context) error {
		return func(ctx context.Context) error {
			order = append(order, id)
			if id == "b" || id == "d" {
				return errors.New(string(id) + " is broken")
			}
			return ctx.Err()
		}
	}
	g := &graph{workers: 1, now: time.Now, tell: func(Span) {}}
	for id, after := range map[desired.ID][]desired.ID{"a": nil, "b": {"a"}, "c": {"b"}, "d": {"a"}, "e": {"a"}} {
		g.nodes = append(g.nodes, &node{id: id, after: after, optional: true, do: do(id)})
	}
	err := g.run(t.Context())
	slices.Sort(order)
	if d := cmp.Diff([]desired.ID{"a", "b", "d", "e"}, order); d != "" {
		t.Error(d)
	}
	if err == nil || !strings.Contains(err.Error(), "b is broken") || !strings.Contains(err.Error(), "d is broken") {
		t.Error(err)
	}
	order = nil
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := g.run(stopped); !errors.Is(err, context.Canceled) || len(order) > 1 {
		t.Errorf("stopped: %v, %v", err, order)
	}
}

func TestGraphStopsAfterFailure(t *testing.T) {
	order, err := runGraph(t, 1, nil, map[desired.ID][]desired.ID{"b": {"a"}, "c": {"b"}, "d": {"c"}, "e": {"d"}}, "b")
	var act *ActionError
	if !errors.As(err, &act) || act.ID != "b" {
		t.Fatalf("error %v, want b's", err)
	}
	if diff := cmp.Diff([]desired.ID{"a", "b"}, order); diff != "" {
		t.Fatal(diff)
	}
}

func TestGraphWithACircle(t *testing.T) {
	order, err := runGraph(t, 2, nil, map[desired.ID][]desired.ID{"b": {"c"}, "c": {"d"}, "d": {"b"}}, "")
	if !errors.Is(err, errCircle) || len(order) != 2 {
		t.Fatalf("%v ran, error %v", order, err)
	}
}

func TestGraphReportsCauseNotCancellation(t *testing.T) {
	told := map[desired.ID]string{}
	var mu sync.Mutex
	g := &graph{workers: 2, now: time.Now, tell: func(s Span) {
		mu.Lock()
		defer mu.Unlock()
		told[s.ID] = s.Error
	}}
	g.nodes = []*node{
		{id: "slow", do: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		{id: "bad", do: func(context.Context) error { return errors.New("broken") }},
	}
	err := g.run(t.Context())
	if errors.Is(err, context.Canceled) || err == nil {
		t.Fatalf("error %v, want only the cause", err)
	}
	if diff := cmp.Diff(map[desired.ID]string{"slow": GivenUp, "bad": "broken"}, told); diff != "" {
		t.Error(diff)
	}
}
