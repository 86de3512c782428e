// Package rollout decides when a node takes a new document, so that not all nodes
// of a pool do so at once: by time (Delay), or by turns (Turns).
package rollout

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"time"
)

// DelayAnnotation of a Node is how long it waits, as a Go duration. A controller
// of the cluster may set it.
const DelayAnnotation = "node-agent.gardener.cloud/reconciliation-delay"

// Delay is how long a node waits before it takes a document. The annotation of its
// Node counts; where there is none, or the error says that it can't be read, the
// time is within the window and derived from node and checksum: it is the same
// after a restart, and nobody has to write to each Node.
//
// Two nodes are as far apart as two random points: of N nodes over a window W,
// N*d/W are expected within a time d, and two of them are closer than d with a
// probability below 2d/W.
func Delay(annotations map[string]string, node, checksum string, window time.Duration) (time.Duration, error) {
	text, set := annotations[DelayAnnotation]
	if !set {
		return jitter(node, checksum, window), nil
	}
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = fmt.Errorf("%s lies in the past", d)
	}
	if err != nil {
		return jitter(node, checksum, window), fmt.Errorf("annotation %s of the Node: %w", DelayAnnotation, err)
	}
	return d, nil
}

// jitter is in [0, window).
func jitter(node, checksum string, window time.Duration) time.Duration {
	if window <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(node + "\x00" + checksum))
	share, _ := bits.Mul64(binary.BigEndian.Uint64(sum[:8]), uint64(window))
	return time.Duration(share)
}
