// Package cri asks the machine's container runtime to end what kubelet had it run.
// Nothing else of the runtime is touched: it alone knows the network and the mounts of
// a sandbox.
package cri

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// connectBound is how long a runtime that runs has for its first answer.
	connectBound = 10 * time.Second
	// answerBound is how long it has for each other one, besides the time that a
	// container is given.
	answerBound = 30 * time.Second
)

// The labels and annotations by which kubelet knows its pods.
const (
	nameLabel        = "io.kubernetes.pod.name"
	namespaceLabel   = "io.kubernetes.pod.namespace"
	uidLabel         = "io.kubernetes.pod.uid"
	sourceAnnotation = "kubernetes.io/config.source"
)

// Client speaks to one runtime. Use Open.
type Client struct {
	conn *grpc.ClientConn
	api  runtimeapi.RuntimeServiceClient
}

// Sandbox is what a pod runs in.
type Sandbox struct {
	ID                   string
	Namespace, Name, UID string
	// Ready: it runs. One that does not still holds its network and its mounts.
	Ready bool
	// Static: kubelet took the pod from a file of the machine.
	Static bool
}

// String is the pod's name.
func (s Sandbox) String() string { return s.Namespace + "/" + s.Name }

// Open connects to the runtime at a socket, and waits until it answers. Where nobody
// listens it fails at once.
func Open(ctx context.Context, socket string) (*Client, error) {
	probe, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("connect to the container runtime: %w", err)
	}
	if err := probe.Close(); err != nil {
		return nil, fmt.Errorf("connect to the container runtime: %w", err)
	}
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableServiceConfig(), grpc.WithAuthority("localhost"))
	if err != nil {
		return nil, fmt.Errorf("connect to the container runtime: %w", err)
	}
	c := &Client{conn: conn, api: runtimeapi.NewRuntimeServiceClient(conn)}
	ctx, cancel := context.WithTimeout(ctx, connectBound)
	defer cancel()
	if _, err := c.api.Version(ctx, &runtimeapi.VersionRequest{}, grpc.WaitForReady(true)); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("ask the container runtime for its version: %w", err)
	}
	return c, nil
}

// Close ends the connection.
func (c *Client) Close() { _ = c.conn.Close() }

// Sandboxes lists all sandboxes, those that do not run any more, too, by pod.
func (c *Client) Sandboxes(ctx context.Context) ([]Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, answerBound)
	defer cancel()
	r, err := c.api.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	var all []Sandbox
	for _, s := range r.Items {
		all = append(all, Sandbox{
			ID: s.Id, Namespace: s.Labels[namespaceLabel], Name: s.Labels[nameLabel], UID: s.Labels[uidLabel],
			Ready:  s.State == runtimeapi.PodSandboxState_SANDBOX_READY,
			Static: s.Annotations[sourceAnnotation] == "file",
		})
	}
	slices.SortFunc(all, func(a, b Sandbox) int {
		if a.String()+a.ID < b.String()+b.ID {
			return -1
		}
		return 1
	})
	return all, nil
}

// Remove ends a sandbox with its containers, which have a time to end by themselves,
// its network and its mounts. One that has gone is no error.
func (c *Client) Remove(ctx context.Context, id string, grace time.Duration) error {
	if err := c.stopContainers(ctx, id, grace); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerBound)
	defer cancel()
	if _, err := c.api.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id}); failed(err) {
		return fmt.Errorf("stop sandbox: %w", err)
	}
	if _, err := c.api.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id}); failed(err) {
		return fmt.Errorf("remove sandbox: %w", err)
	}
	return nil
}

// stopContainers gives those of a sandbox that run their time, all at once: the
// sandbox's own end would give them none.
func (c *Client) stopContainers(ctx context.Context, id string, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, grace+answerBound)
	defer cancel()
	r, err := c.api.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		PodSandboxId: id, State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}}})
	if failed(err) {
		return fmt.Errorf("list containers: %w", err)
	}
	errs := make(chan error)
	for _, container := range r.GetContainers() {
		go func() {
			_, err := c.api.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: container.Id, Timeout: int64(grace / time.Second)})
			errs <- err
		}()
	}
	var first error
	for range r.GetContainers() {
		if err := <-errs; failed(err) && first == nil {
			first = fmt.Errorf("stop container: %w", err)
		}
	}
	return first
}

// failed says that a call did not do its work: what has gone needs none.
func failed(err error) bool { return err != nil && status.Code(err) != codes.NotFound }
