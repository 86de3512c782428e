package apiserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

// watchNode follows the own Node with the node's own credential. A watch that
// ends is opened again, with the kubeconfig read anew: kubelet may just have
// written it.
func (w *nodeWait) watchNode(ctx context.Context) {
	next := Intervals(20*time.Millisecond, time.Second)
	for ctx.Err() == nil {
		began := time.Now()
		err := w.followNode(ctx)
		if ctx.Err() != nil {
			return
		}
		w.see(func() { w.watching, w.nodeErr = false, err })
		if time.Since(began) > time.Minute {
			next.Reset()
		}
		Pause(ctx, next.NextBackOff())
	}
}

func (w *nodeWait) followNode(ctx context.Context) error {
	k, err := kubeconfig.Read(w.Host, w.Kubeconfig)
	if err != nil {
		return err
	}
	c, err := NewClient(accessOf(k))
	if err != nil {
		return err
	}
	defer c.Close()
	events, err := c.WatchNode(ctx, w.Node)
	if err != nil {
		return err
	}
	defer events.Stop()
	if ctx.Err() != nil { // a watch that ran out of time before it stood is no error to the library
		return ctx.Err()
	}
	w.see(func() { w.watching, w.nodeErr = true, nil })
	for event := range events.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		node, ok := event.Object.(*core.Node)
		if !ok {
			continue
		}
		if event.Type == watch.Deleted {
			node = nil
		}
		w.see(func() {
			if w.first == "" && node != nil {
				w.first = node.ResourceVersion
			}
			w.node = node
		})
	}
	return errWatchEnded
}

var errWatchEnded = errors.New("the watch ended")

func accessOf(k *kubeconfig.Config) Access {
	return Access{Server: k.Server, CA: k.CA, Token: k.Token, Certificate: k.Certificate, Key: k.Key, Plugin: k.Plugin}
}

// bootID is the kernel's name for the present boot; "" if it can't be read.
func bootID(h host.FS) string {
	text, err := h.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// ours says whether a Node speaks of this boot of this machine: an object of the
// same name may be left from another machine, or from before a reboot.
func (w *nodeWait) ours(n *core.Node) bool {
	return w.boot == "" || n.Status.NodeInfo.BootID == w.boot
}

// ready says whether the kubelet that runs now calls its Node Ready. One that was
// started again has not spoken yet while the heartbeat is older than its process.
// Where the unit can't be asked, the word counts.
//
// Heartbeats are cut to seconds. One of the second in which the process began may
// still be its predecessor's: it counts if Ready began in that second, too, or the
// Node has changed since it was first seen, or the process has had spokenAfter to
// say otherwise.
func (w *nodeWait) ready(n *core.Node) bool {
	c := readyCondition(n)
	if c == nil || c.Status != core.ConditionTrue || !w.asked {
		return false
	}
	if w.unitErr != nil {
		return true
	}
	began := w.unit.ExecMainStart.Truncate(time.Second)
	if w.unit.ActiveState != "active" || c.LastHeartbeatTime.Time.Before(began) {
		return false
	}
	return c.LastHeartbeatTime.After(began) || !c.LastTransitionTime.Time.Before(began) ||
		n.ResourceVersion != w.first || w.Host.Now().Sub(w.unit.ExecMainStart) > spokenAfter
}

// spokenAfter is how long after its start a kubelet has reported its Node's status,
// if the API server can be reached at all: it does so as soon as it has registered.
const spokenAfter = 2 * time.Second

func readyCondition(n *core.Node) *core.NodeCondition {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == core.NodeReady {
			return c
		}
	}
	return nil
}

// describe is a condition as a person reads it.
func describe(c *core.NodeCondition) string {
	return fmt.Sprintf("Ready=%s, reason %s: %s", c.Status, c.Reason, c.Message)
}
