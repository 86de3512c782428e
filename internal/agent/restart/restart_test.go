package restart

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// cluster has a Node, which its watch shows a little later.
type cluster struct {
	seen *apiserver.Latest[core.Node]

	mu      sync.Mutex
	version int
	value   *string
	faults  []error
	events  []string
}

func (c *cluster) annotate(value string) {
	c.mu.Lock()
	c.version++
	c.value = &value
	c.mu.Unlock()
	c.show()
}

// touch is somebody else's change of the Node that the watch does not show yet.
func (c *cluster) touch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
}

// fail has the next patches fail.
func (c *cluster) fail(errs ...error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = errs
}

func (c *cluster) show() {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := &core.Node{ObjectMeta: meta.ObjectMeta{Name: "n1", ResourceVersion: strconv.Itoa(c.version), Annotations: map[string]string{}}}
	if c.value != nil {
		n.Annotations[Annotation] = *c.value
	}
	c.seen.Set(n)
}

func (c *cluster) PatchNode(_ context.Context, _ string, patch []byte) (*core.Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.faults) > 0 {
		err := c.faults[0]
		c.faults = c.faults[1:]
		return nil, err
	}
	var p struct {
		Metadata struct {
			ResourceVersion string
			Annotations     map[string]*string
		}
	}
	if err := json.Unmarshal(patch, &p); err != nil {
		return nil, err
	}
	if p.Metadata.ResourceVersion != strconv.Itoa(c.version) {
		time.AfterFunc(100*time.Millisecond, c.show)
		return nil, apierrors.NewConflict(schema.GroupResource{}, "n1", nil)
	}
	if v, asked := p.Metadata.Annotations[Annotation]; !asked || v != nil {
		return nil, errors.New("the annotation is not removed")
	}
	c.version++
	c.value = nil
	time.AfterFunc(100*time.Millisecond, c.show)
	return nil, nil
}

func (c *cluster) Normal(_, message string)       { c.events = append(c.events, message) }
func (c *cluster) Warning(reason, message string) { c.events = append(c.events, reason+": "+message) }

// run has restarts go on for ten minutes and returns what Run did.
func run(t *testing.T, try func(*cluster, *memory.Host)) (restarted, events []string, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := memory.New()
		for _, name := range []string{"kubelet.service", "containerd.service", "logs.service", "agent.service"} {
			h.Put("/etc/systemd/system/"+name, "[Service]\nType=simple\nExecStart=/usr/bin/true\n", 0o644)
		}
		h.Put("/etc/systemd/system/broken.service", "[Service]\nType=notify\nExecStart=/usr/bin/true\n", 0o644)
		h.Put("/etc/systemd/system/logs.timer", "[Timer]\nOnCalendar=daily\n", 0o644)
		h.Program("/usr/bin/true", func(host.Command) host.Output { return host.Output{} })
		h.Behave("broken.service", func(memory.Start) memory.Outcome { return memory.Outcome{Status: 1} })
		c := &cluster{seen: &apiserver.Latest[core.Node]{}}
		r := &Restarts{Systemd: h, Calls: c, Events: c, Node: c.seen, Own: "agent.service"}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		ended := make(chan struct{})
		go func() { defer close(ended); err = r.Run(ctx) }()
		try(c, h)
		<-ended
		for _, j := range h.Jobs() {
			restarted = append(restarted, j.Unit)
		}
		events = c.events
		if c.value != nil {
			t.Errorf("annotation %q is left", *c.value)
		}
	})
	return restarted, events, err
}

func TestRestarts(t *testing.T) {
	for name, tc := range map[string]struct {
		value  string
		want   []string
		events string
		err    error
	}{
		"one":             {"kubelet", []string{"kubelet.service"}, "restarted kubelet.service", nil},
		"spaces, doubles": {" kubelet.service , containerd,, kubelet", []string{"kubelet.service", "containerd.service"}, "restarted containerd.service", nil},
		"own last":        {"agent,kubelet", []string{"kubelet.service"}, "restarted kubelet.service", ErrRestart},
		"only own":        {"agent.service", nil, "", ErrRestart},
		"another type":    {"logs.timer", []string{"logs.timer"}, "restarted logs.timer", nil},
		"unknown":         {"nothing,kubelet", []string{"kubelet.service"}, "SystemDUnitRestart: restart of nothing.service failed: there is no such unit", nil},
		"no name":         {"../x,kubelet", []string{"kubelet.service"}, "SystemDUnitRestart: restart of ../x.service failed", nil},
		"fails":           {"broken,kubelet", []string{"broken.service", "kubelet.service"}, "SystemDUnitRestart: restart of broken.service failed", nil},
		"only commas":     {" ,, ", nil, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, events, err := run(t, func(c *cluster, _ *memory.Host) {
				c.seen.Set(nil)
				c.annotate(tc.value)
			})
			if d := cmp.Diff(tc.want, got); d != "" || !errors.Is(err, tc.err) {
				t.Errorf("%v: %s", err, d)
			}
			if !strings.Contains(strings.Join(events, "\n"), tc.events) {
				t.Errorf("events %q", events)
			}
		})
	}
}

func TestARequestIsDoneOnce(t *testing.T) {
	away := errors.New("connection refused")
	for name, try := range map[string]func(*cluster){
		"server away":        func(c *cluster) { c.fail(away, away, away); c.annotate("kubelet") },
		"Node changed":       func(c *cluster) { c.annotate("kubelet"); c.touch() },
		"the watch is slow":  func(c *cluster) { c.annotate("kubelet"); c.show(); c.show() },
		"asked for it again": func(c *cluster) { c.annotate("containerd"); time.Sleep(time.Minute); c.annotate("kubelet") },
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := run(t, func(c *cluster, _ *memory.Host) { try(c) })
			got = slices.DeleteFunc(got, func(u string) bool { return u != "kubelet.service" })
			if len(got) != 1 || err != nil {
				t.Errorf("restarted %v, %v", got, err)
			}
		})
	}
}

func TestARequestThatCameMeanwhileIsNotLost(t *testing.T) {
	got, _, err := run(t, func(c *cluster, _ *memory.Host) {
		c.fail(errors.New("connection refused"))
		c.annotate("kubelet")
		time.Sleep(10 * time.Millisecond)
		c.annotate("containerd")
	})
	if d := cmp.Diff([]string{"kubelet.service", "containerd.service"}, got); d != "" || err != nil {
		t.Errorf("%v: %s", err, d)
	}
}

func FuzzNames(f *testing.F) {
	f.Add("a, b.timer,,a.service")
	f.Fuzz(func(t *testing.T, list string) {
		names := Names(list)
		for i, n := range names {
			if n == "" || strings.Contains(n, ",") || strings.TrimSpace(n) != n || slices.Contains(names[:i], n) {
				t.Fatalf("%q of %q", n, list)
			}
		}
		if again := Names(strings.Join(names, ",")); !slices.Equal(again, names) {
			t.Fatalf("%q, then %q", names, again)
		}
	})
}
