package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// manager is a cluster manager's side of a rollout: it waits by what agents publish, and
// by nothing else. It finds the nodes of a pool by the label that names their Secret.
type manager struct {
	*agentMachine
	nodes int
}

// rolledOut waits until the manager would go on: every node of the pool has the checksum
// of the Secret's annotation, and is looked after.
func (m manager) rolledOut(t *testing.T) {
	t.Helper()
	m.waits(t, func(ctx context.Context) error {
		sum, nodes, err := m.look(ctx)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if got := n.Annotations[agentApplied]; got != sum {
				return fmt.Errorf("%s has the checksum %q, want %q", n.Name, got, sum)
			}
		}
		return m.unwell(ctx, nodes)
	})
}

// finds waits until the manager says that something is wrong with the pool.
func (m manager) finds(t *testing.T, want string) {
	t.Helper()
	m.waits(t, func(ctx context.Context) error {
		_, nodes, err := m.look(ctx)
		if err != nil {
			return err
		}
		err = m.unwell(ctx, nodes)
		if err == nil {
			return fmt.Errorf("all is well, want %q", want)
		}
		if !strings.Contains(err.Error(), want) {
			return fmt.Errorf("want %q: %w", want, err)
		}
		return nil
	})
}

func (m manager) waits(t *testing.T, f func(context.Context) error) {
	t.Helper()
	var err error
	for ctx := within(t, 3*time.Minute); ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
		if err = f(ctx); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// look is the checksum that the manager waits for, and on which nodes.
func (m manager) look(ctx context.Context) (sum string, nodes []corev1.Node, err error) {
	s, err := m.lab.Client().CoreV1().Secrets("kube-system").Get(ctx, m.secret, metav1.GetOptions{})
	if err != nil {
		return "", nil, err
	}
	list, err := m.lab.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: agentSecretLabel + "=" + m.secret})
	if err != nil {
		return "", nil, err
	}
	if len(list.Items) != m.nodes {
		err = fmt.Errorf("%d nodes of %s, want %d", len(list.Items), m.secret, m.nodes)
	}
	return s.Annotations["checksum/data-script"], list.Items, err
}

// unwell is why the manager would not call the nodes healthy: an agent whose Lease is
// missing or has run out, or units that are not ready.
func (m manager) unwell(ctx context.Context, nodes []corev1.Node) error {
	leases, err := m.lab.Client().CoordinationV1().Leases("kube-system").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, n := range nodes {
		i := slices.IndexFunc(leases.Items, func(l coordinationv1.Lease) bool { return l.Name == "gardener-node-agent-"+n.Name })
		if i < 0 {
			return fmt.Errorf("the agent of %s is not running", n.Name)
		}
		if spec := leases.Items[i].Spec; spec.RenewTime.Add(time.Duration(*spec.LeaseDurationSeconds) * time.Second).Before(time.Now()) {
			return fmt.Errorf("the agent of %s stopped running", n.Name)
		}
		i = slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == "SystemdUnitsReady" })
		if i < 0 || n.Status.Conditions[i].Status != corev1.ConditionTrue {
			return fmt.Errorf("units of %s are not ready", n.Name)
		}
	}
	return nil
}
