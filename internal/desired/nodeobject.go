package desired

import (
	"errors"
	"fmt"
	"strings"
)

// NodeObject is what the cluster's Node object says of this machine after it has
// registered: kubelet gives labels and taints only to a Node that it creates.
type NodeObject struct {
	Base
	// Name is the Node's.
	Name string `json:"name"`
	// Kubeconfig is kubelet's: its credential is the node's own.
	Kubeconfig string `json:"kubeconfig"`
	// Unit is kubelet's: it creates the Node, once after each start.
	Unit string `json:"unit"`
	// Labels are those of the contract; others on the Node are others'.
	Labels map[string]string `json:"labels,omitempty"`
	// Taints are compared and reported: a node may not change its own.
	Taints []Taint `json:"taints,omitempty"`
}

// NodeObjectID names a Node.
func NodeObjectID(name string) ID { return ID("node:" + name) }

// ID implements Resource.
func (n *NodeObject) ID() ID { return NodeObjectID(n.Name) }

// Kind implements Resource.
func (n *NodeObject) Kind() string { return "node" }

// Validate implements Resource. What a label may be is for the document's reader
// to say.
func (n *NodeObject) Validate() error {
	if n.Name == "" || strings.Contains(n.Name, "/") || n.Unit == "" {
		return errors.New("a Node needs a name without slash, and the unit that registers it")
	}
	if _, empty := n.Labels[""]; empty {
		return fmt.Errorf("node %s: a label without name", n.Name)
	}
	return cleanAbs(n.Kubeconfig)
}

// String is a taint as kubectl writes it.
func (t Taint) String() string {
	head := t.Key
	if t.Value != "" {
		head += "=" + t.Value
	}
	return head + ":" + t.Effect
}

// ParseTaints reads taints as String writes them, separated by commas; ok is false
// where one has no effect.
func ParseTaints(text string) (out []Taint, ok bool) {
	if text == "" {
		return nil, true
	}
	for one := range strings.SplitSeq(text, ",") {
		head, effect, ok := strings.Cut(one, ":")
		if !ok {
			return nil, false
		}
		key, value, _ := strings.Cut(head, "=")
		out = append(out, Taint{Key: key, Value: value, Effect: effect})
	}
	return out, true
}
