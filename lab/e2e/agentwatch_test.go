package e2e

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// watchExpired: the agent's API server starts anew and does not know any more what came
// before. A document of the time in between is in force, and the agent goes on.
func (m *agentMachine) watchExpired(t *testing.T) {
	end := m.another(t)
	m.servedBy(t, m.lab.APIServer(), m.lab.AnotherAPIServer())
	m.applied(t, m.ask(t, hello("by another server")))
	was, old := m.invocation(t, agentUnit), m.version(t)
	end()
	sum := m.ask(t, hello("while it was down"))
	end = m.another(t)
	m.expired(t, old)
	m.applied(t, sum)
	if m.invocation(t, agentUnit) != was {
		t.Error("the agent was started anew")
	}
	m.applied(t, m.ask(t, hello("watched again")))
	m.servedBy(t, m.lab.AnotherAPIServer(), m.lab.APIServer())
	end()
	m.applied(t, m.ask(t, hello("by the first one")))
}

// another starts one more API server, and returns what ends it.
func (m *agentMachine) another(t *testing.T) func() {
	t.Helper()
	end, err := m.lab.StartAnotherAPIServer(within(t, time.Minute))
	check(t, err)
	return func() { t.Helper(); check(t, end(within(t, 10*time.Second))) }
}

// servedBy has the agent ask another API server.
func (m *agentMachine) servedBy(t *testing.T, old, next string) {
	t.Helper()
	run(t, m.node, "sh", "-c", "cd "+agentDir+" && sed -i 's#"+old+"#"+next+"#' config-v0.0.1.yaml credentials/kubeconfig && systemctl restart "+agentUnit)
}

// version is the version of the agent's Secret.
func (m *agentMachine) version(t *testing.T) string {
	t.Helper()
	s, err := m.lab.Client().CoreV1().Secrets("kube-system").Get(within(t, 10*time.Second), m.secret, metav1.GetOptions{})
	check(t, err)
	return s.ResourceVersion
}

// expired fails unless the other API server refuses to watch from a version.
func (m *agentMachine) expired(t *testing.T, version string) {
	t.Helper()
	c := m.lab.RESTConfig()
	c.Host = m.lab.AnotherAPIServer()
	client, err := kubernetes.NewForConfig(c)
	check(t, err)
	w, err := client.CoreV1().Secrets("kube-system").Watch(within(t, 10*time.Second), metav1.ListOptions{ResourceVersion: version, FieldSelector: "metadata.name=" + m.secret})
	if err == nil {
		defer w.Stop()
		e := <-w.ResultChan()
		err = apierrors.FromObject(e.Object)
		if e.Type != watch.Error {
			t.Fatalf("it watches from version %s: %+v", version, e)
		}
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("version %s has not expired: %v", version, err)
	}
}
