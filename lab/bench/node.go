package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/berth-dev/berth/lab"
)

// fresh boots a node, whose name gets a number, and removes it after use, with
// its disk and its Node: no run leaves anything to the next.
func (b *bench) fresh(ctx context.Context, c lab.NodeConfig, use func(context.Context, *lab.Node) error) error {
	b.n++
	c.Name = fmt.Sprintf("%s-%d", c.Name, b.n)
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	n, err := b.lab.AddNode(ctx, c)
	if err != nil {
		return err
	}
	_, err = n.WaitBooted(ctx)
	if err == nil {
		err = use(ctx, n)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, n.Tail(ctx, 60))
	}
	if err := n.Remove(ctx); err != nil {
		return err
	}
	err = b.lab.Client().CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) { // it has left
		return nil
	}
	return err
}

// timed runs a command in a node until the node is Ready.
func (b *bench) timed(ctx context.Context, n *lab.Node, command []string) (Run, error) {
	w, err := b.watch(ctx, n.Name)
	if err != nil {
		return Run{}, err
	}
	defer w.stop()
	start := time.Now()
	if err := n.Run(ctx, command...); err != nil {
		return Run{}, err
	}
	run := Run{Command: time.Since(start)}
	if err := w.ready(ctx); err != nil {
		return run, err
	}
	run.Registered, run.Ready = w.registeredAt.Sub(start), w.readyAt.Sub(start)
	run.Kubelet, err = kubeletStart(ctx, n, start)
	return run, err
}

type watcher struct {
	events                <-chan nodeEvent
	stop                  func()
	registeredAt, readyAt time.Time
}

type nodeEvent struct {
	at    time.Time
	ready bool
}

// watch notes when events of one Node arrive.
func (b *bench) watch(ctx context.Context, name string) (*watcher, error) {
	w, err := b.lab.Client().CoreV1().Nodes().Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	if err != nil {
		return nil, err
	}
	events := make(chan nodeEvent, 100)
	go func() {
		defer close(events)
		for e := range w.ResultChan() {
			if n, ok := e.Object.(*corev1.Node); ok {
				events <- nodeEvent{time.Now(), isReady(n)}
			}
		}
	}()
	return &watcher{events: events, stop: w.Stop}, nil
}

func isReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (w *watcher) ready(ctx context.Context) error {
	for {
		select {
		case e, ok := <-w.events:
			if !ok {
				return fmt.Errorf("the watch ended before the node was Ready")
			}
			if w.registeredAt.IsZero() {
				w.registeredAt = e.at
			}
			if e.ready {
				w.readyAt = e.at
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("wait for Ready: %w", ctx.Err())
		}
	}
}

// kubeletStart reads from systemd when kubelet's process started.
func kubeletStart(ctx context.Context, n *lab.Node, start time.Time) (time.Duration, error) {
	text, err := n.Output(ctx, "systemctl", "show", "kubelet", "--value", "--property=ExecMainStartTimestamp", "--timestamp=us+utc")
	if err != nil {
		return 0, err
	}
	at, err := time.Parse("Mon 2006-01-02 15:04:05.000000 MST", strings.TrimSpace(text))
	if err != nil {
		return 0, fmt.Errorf("read kubelet's start: %w", err)
	}
	return at.Sub(start), nil
}
