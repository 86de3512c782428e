package faults_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// nodeObject is where the cluster keeps the Node of a machine: beside its files. A
// patch of it is one effect of the machine, so that a run can be cut off before and
// after it, and is durable when it is done.
const (
	nodeObject = "/cluster/node"
	nodePatch  = "/usr/sbin/patch-node"
)

// register is what kubelet does with its labels when it starts: it creates the
// Node, and leaves one that is there.
func register(h *memory.Host) {
	if _, err := h.Lstat(nodeObject); err == nil {
		return
	}
	flags, err := h.ReadFile("/etc/default/kubelet")
	check(err)
	_, rest, _ := strings.Cut(string(flags), "KUBELET_NODE_LABELS=\"")
	list, _, _ := strings.Cut(rest, "\"")
	labels := map[string]string{}
	for one := range strings.SplitSeq(list, ",") {
		key, value, _ := strings.Cut(one, "=")
		labels[key] = value
	}
	h.Put(nodeObject, labelText(labels), 0o600)
}

func labelText(labels map[string]string) string {
	text, err := json.Marshal(labels)
	check(err)
	return string(text)
}

// nodes is the cluster as the node of a machine sees it.
type nodes struct {
	h        host.Host
	patching *sync.Mutex // makes each patch whole, as an API server does
}

func (n nodes) Open(kubeconfig, _ string) (converge.NodeSession, error) {
	_, err := n.h.Lstat(kubeconfig)
	return n, err
}

func (n nodes) Get(context.Context) (*converge.NodeState, error) {
	text, err := n.h.ReadFile(nodeObject)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	out := &converge.NodeState{UID: "1"}
	if given, err := n.h.ReadFile(podAddresses); err == nil {
		out.PodCIDRs = []string{string(given)}
	}
	return out, errors.Join(err, json.Unmarshal(text, &out.Labels))
}

func (n nodes) Label(ctx context.Context, _ string, set map[string]*string) (*converge.NodeState, error) {
	n.patching.Lock()
	defer n.patching.Unlock()
	now, err := n.Get(ctx)
	if err != nil {
		return nil, err
	}
	for key, value := range set {
		if delete(now.Labels, key); value != nil {
			now.Labels[key] = *value
		}
	}
	_, err = n.h.Run(ctx, host.Command{Path: path.Base(nodePatch), Args: []string{labelText(now.Labels)}})
	return now, err
}

// patches lets the machine patch its Node.
func patches(h *memory.Host) {
	h.Program(nodePatch, func(c host.Command) host.Output {
		h.Put(nodeObject, c.Args[0], 0o600)
		return host.Output{}
	})
}

func (n nodes) Await(ctx context.Context) (*converge.NodeState, error) { return n.Get(ctx) }
