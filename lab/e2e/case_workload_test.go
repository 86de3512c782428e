package e2e

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const registryName = "registry.lab.test"

// images is a registry of the lab with the workload in it. It speaks plain
// HTTP: a node pulls from it only because its hosts.toml says so.
type images struct {
	*serve.Registry
	server   string // host:port
	workload string // the image's name
}

func serveImages(t *testing.T, l *lab.Lab) *images {
	t.Helper()
	program, err := l.Workload(within(t, 2*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	r := serve.NewRegistry()
	if _, err := r.Push(within(t, time.Minute), "workload:1", serve.StaticImage("workload", program)); err != nil {
		t.Fatal(err)
	}
	if err := l.AddName(registryName, l.Gateway()); err != nil {
		t.Fatal(err)
	}
	server := fmt.Sprintf("%s:%d", registryName, listen(t, l, plain(r)))
	return &images{r, server, server + "/workload:1"}
}

// trust is what a node's image has to know of the registry.
func (i *images) trust() map[string]lab.File {
	hosts := fmt.Sprintf("server = \"http://%[1]s\"\n\n[host.\"http://%[1]s\"]\ncapabilities = [\"pull\", \"resolve\"]\n", i.server)
	return map[string]lab.File{i.trustPath(): {Content: []byte(hosts)}}
}

func (i *images) trustPath() string { return "/etc/containerd/certs.d/" + i.server + "/hosts.toml" }

// runWorkload runs the workload as a pod of a node and waits until it runs.
func runWorkload(t *testing.T, l *lab.Lab, image, name, node string) *corev1.Pod {
	t.Helper()
	pods := l.Client().CoreV1().Pods("default")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "workload", Image: image, ImagePullPolicy: corev1.PullAlways}}},
	}
	awaitServiceAccount(t, l)
	if _, err := pods.Create(within(t, 10*time.Second), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deletePod(t, l, name) })
	waitRunning(t, l, name)
	pod, err := pods.Get(within(t, 10*time.Second), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func deletePod(t *testing.T, l *lab.Lab, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := l.Client().CoreV1().Pods("default").Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Errorf("delete pod %s: %v", name, err)
	}
}

// kubectl runs kubectl, which must succeed, and returns what it prints.
func kubectl(t *testing.T, l *lab.Lab, args ...string) string {
	t.Helper()
	r, err := l.Kubectl(within(t, 30*time.Second), args...)
	if err != nil || r.Code != 0 {
		t.Fatalf("kubectl %s: %v, exit code %d\n%s%s", strings.Join(args, " "), err, r.Code, r.Stdout, r.Stderr)
	}
	return string(r.Stdout)
}

// checkWorkload proves that a pod lives: its image came from the registry, it
// has an address of its node, and logs and exec reach it through the cluster.
func checkWorkload(t *testing.T, l *lab.Lab, i *images, image, name string, node *lab.Node) {
	t.Helper()
	i.Clear()
	start := time.Now()
	pod := runWorkload(t, l, image, name, node.Name)
	t.Logf("pod %s runs after %.1f s", name, time.Since(start).Seconds())
	n, err := l.Client().CoreV1().Nodes().Get(within(t, 10*time.Second), node.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := inside(pod.Status.PodIP, n.Spec.PodCIDR); err != nil {
		t.Error(err)
	}
	if !i.pulledBy(node) {
		t.Errorf("%s did not pull %s", node.Name, image)
	}
	if out := kubectl(t, l, "logs", name); out != "workload runs in "+name+"\n" {
		t.Errorf("kubectl logs: %q", out)
	}
	if out := kubectl(t, l, "exec", name, "--", "/workload", "echo", "from", "inside"); out != "from inside\n" {
		t.Errorf("kubectl exec: %q", out)
	}
}

// inside says whether an address belongs to a network.
func inside(ip, network string) error {
	a, err := netip.ParseAddr(ip)
	p, perr := netip.ParsePrefix(network)
	if err := errors.Join(err, perr); err != nil {
		return err
	}
	if !p.Contains(a) {
		return fmt.Errorf("%s is not an address of %s", ip, network)
	}
	return nil
}

// pulledBy says whether a node fetched the workload's manifest.
func (i *images) pulledBy(n *lab.Node) bool {
	return slices.ContainsFunc(i.Requests(), func(r serve.Request) bool {
		from, err := netip.ParseAddrPort(r.From)
		return err == nil && from.Addr() == n.IP && strings.HasPrefix(r.Path, "/v2/workload/manifests/")
	})
}

// mirrored is the workload's name in Microsoft's registry.
const mirrored = "mcr.microsoft.com/workload:1"

// mirror stands in for Microsoft's registry. It speaks TLS under an authority
// that a node knows only if its bundle has it.
type mirror struct {
	server string // host:port
	ca     []byte // PEM
}

func serveMirror(t *testing.T, l *lab.Lab, i *images) *mirror {
	t.Helper()
	const name = "mirror.lab.test"
	cert, err := serve.Stranger(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.AddName(name, l.Gateway()); err != nil {
		t.Fatal(err)
	}
	port := listen(t, l, func(n net.Listener) *serve.Server { return serve.StartTLS(n, cert, i) })
	return &mirror{fmt.Sprintf("%s:%d", name, port), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[1]})}
}

// plain serves HTTP without TLS.
func plain(h http.Handler) func(net.Listener) *serve.Server {
	return func(l net.Listener) *serve.Server { return serve.Start(l, h) }
}

// listen serves on the lab's gateway until the test ends, and returns the port.
func listen(t *testing.T, l *lab.Lab, start func(net.Listener) *serve.Server) int {
	t.Helper()
	listener, err := l.Listen(within(t, 10*time.Second), "tcp", netip.AddrPortFrom(l.Gateway(), 0).String())
	if err != nil {
		t.Fatal(err)
	}
	s := start(listener)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close server: %v", err)
		}
	})
	return listener.Addr().(*net.TCPAddr).Port
}
