package bench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/berth-dev/berth/lab"
)

const (
	agentSecret  = "gardener-node-agent-bench"
	agentWants   = "checksum/data-script"
	agentApplied = "checksum/cloud-config-data"
	agentsGroup  = "gardener.cloud:node-agents"
)

// agentCluster is the cluster's side of agents: what they may do, their
// certificates, their Secret, and what their Nodes say.
type agentCluster struct {
	lab  *lab.Lab
	stop context.CancelFunc

	mu sync.Mutex
	// said is when a Node was first seen with a checksum.
	said    map[string]map[string]time.Time
	changed chan struct{}
	// heard is when a watch of the Secret told of a checksum: so long the Secret takes to
	// whoever watches it.
	heard map[string]time.Time
}

func newAgentCluster(ctx context.Context, l *lab.Lab) (*agentCluster, error) {
	if err := grant(ctx, l); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	c := &agentCluster{lab: l, stop: stop, said: map[string]map[string]time.Time{}, changed: make(chan struct{}), heard: map[string]time.Time{}}
	if err := c.approve(ctx); err != nil {
		stop()
		return nil, err
	}
	for _, watch := range []func(context.Context) error{c.listen, c.hear} {
		if err := watch(ctx); err != nil {
			stop()
			return nil, err
		}
	}
	return c, nil
}

// grant applies what berth prints for agents of one pool.
func grant(ctx context.Context, l *lab.Lab) error {
	text, err := exec.CommandContext(ctx, l.Berth(), "rbac", "--secret", agentSecret).Output()
	if err != nil {
		return fmt.Errorf("print what agents may do: %w", err)
	}
	cmd := l.KubectlCommand(ctx, "apply", "-f", "-")
	cmd.Stdin = bytes.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("grant agents what they may do: %w\n%s", err, out)
	}
	return nil
}

// approve approves what agents ask for, until ctx ends.
func (c *agentCluster) approve(ctx context.Context) error {
	csrs := c.lab.Client().CertificatesV1().CertificateSigningRequests()
	w, err := csrs.Watch(ctx, metav1.ListOptions{FieldSelector: "spec.signerName=" + certificatesv1.KubeAPIServerClientSignerName})
	if err != nil {
		return fmt.Errorf("watch certificate requests: %w", err)
	}
	go func() {
		for e := range w.ResultChan() {
			csr, ok := e.Object.(*certificatesv1.CertificateSigningRequest)
			if !ok || e.Type == watch.Deleted || len(csr.Status.Conditions) > 0 || !strings.HasPrefix(csr.Name, "node-agent-csr-") {
				continue
			}
			csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
				{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Bench"}}
			_, _ = csrs.UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{}) // who asked says so if it came to nothing
		}
	}()
	return nil
}

// listen notes what Nodes say, until ctx ends.
func (c *agentCluster) listen(ctx context.Context) error {
	w, err := c.lab.Client().CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("watch Nodes: %w", err)
	}
	go func() {
		for e := range w.ResultChan() {
			if n, ok := e.Object.(*corev1.Node); ok {
				c.note(n.Name, n.Annotations[agentApplied])
			}
		}
	}()
	return nil
}

// hear notes what the Secret is, until ctx ends.
func (c *agentCluster) hear(ctx context.Context) error {
	w, err := c.lab.Client().CoreV1().Secrets(metav1.NamespaceSystem).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + agentSecret})
	if err != nil {
		return fmt.Errorf("watch the agents' Secret: %w", err)
	}
	go func() {
		for e := range w.ResultChan() {
			if s, ok := e.Object.(*corev1.Secret); ok {
				c.mu.Lock()
				c.heard[s.Annotations[agentWants]] = time.Now()
				c.mu.Unlock()
			}
		}
	}()
	return nil
}

func (c *agentCluster) heardAt(checksum string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard[checksum]
}

func (c *agentCluster) note(node, checksum string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.said[checksum] == nil {
		c.said[checksum] = map[string]time.Time{}
	}
	if _, seen := c.said[checksum][node]; seen {
		return
	}
	c.said[checksum][node] = time.Now()
	close(c.changed)
	c.changed = make(chan struct{})
}

// await waits until so many Nodes say a checksum, and returns when each did.
func (c *agentCluster) await(ctx context.Context, checksum string, nodes int) ([]time.Time, error) {
	for {
		c.mu.Lock()
		changed, now := c.changed, c.said[checksum]
		var times []time.Time
		for _, t := range now {
			times = append(times, t)
		}
		c.mu.Unlock()
		if len(times) >= nodes {
			return times, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return times, fmt.Errorf("%d of %d Nodes say checksum %s: %w", len(times), nodes, checksum, ctx.Err())
		}
	}
}

// ask puts a document into the Secret; start is when it was sent.
func (c *agentCluster) ask(ctx context.Context, document string) (checksum string, start time.Time, err error) {
	sum := sha256.Sum256([]byte(document))
	checksum = hex.EncodeToString(sum[:])
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: agentSecret, Annotations: map[string]string{agentWants: checksum}},
		Data: map[string][]byte{"osc.yaml": []byte(document)}}
	secrets := c.lab.Client().CoreV1().Secrets(metav1.NamespaceSystem)
	start = time.Now()
	_, err = secrets.Update(ctx, s, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		start = time.Now()
		_, err = secrets.Create(ctx, s, metav1.CreateOptions{})
	}
	if err != nil {
		return "", start, fmt.Errorf("change the agents' Secret: %w", err)
	}
	return checksum, start, nil
}
