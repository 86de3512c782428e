package cri

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// fake is a runtime as far as this package speaks to one.
type fake struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	mu         sync.Mutex
	sandboxes  []*runtimeapi.PodSandbox
	containers []*runtimeapi.Container
	calls      []string
	refuse     map[string]codes.Code
}

func (f *fake) call(what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, what)
	if c, ok := f.refuse[what]; ok {
		return status.Error(c, what)
	}
	return nil
}

// Version implements the runtime service.
func (f *fake) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{RuntimeName: "fake"}, nil
}

// Status implements the runtime service.
func (f *fake) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: "RuntimeReady", Status: true}, {Type: "NetworkReady", Reason: "NetworkPluginNotReady", Message: "no configuration"},
	}}}, f.call("status")
}

// ListPodSandbox implements the runtime service.
func (f *fake) ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	return &runtimeapi.ListPodSandboxResponse{Items: f.sandboxes}, f.call("list")
}

// ListContainers implements the runtime service.
func (f *fake) ListContainers(_ context.Context, r *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	out := &runtimeapi.ListContainersResponse{}
	for _, c := range f.containers {
		if c.PodSandboxId == r.Filter.PodSandboxId && c.State == r.Filter.State.State {
			out.Containers = append(out.Containers, c)
		}
	}
	return out, nil
}

// StopContainer implements the runtime service.
func (f *fake) StopContainer(_ context.Context, r *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	if r.Timeout != 5 {
		return nil, status.Errorf(codes.InvalidArgument, "grace of %d s", r.Timeout)
	}
	return &runtimeapi.StopContainerResponse{}, f.call("stop container " + r.ContainerId)
}

// StopPodSandbox implements the runtime service.
func (f *fake) StopPodSandbox(_ context.Context, r *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	return &runtimeapi.StopPodSandboxResponse{}, f.call("stop " + r.PodSandboxId)
}

// RemovePodSandbox implements the runtime service.
func (f *fake) RemovePodSandbox(_ context.Context, r *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	return &runtimeapi.RemovePodSandboxResponse{}, f.call("remove " + r.PodSandboxId)
}

// serve returns a client of the fake. A socket's path has to be short.
func (f *fake) serve(t *testing.T) *Client {
	t.Helper()
	dir, err := os.MkdirTemp("", "cri")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(s, f)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	c, err := Open(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestSandboxes(t *testing.T) {
	labels := func(name string) map[string]string {
		return map[string]string{nameLabel: name, namespaceLabel: "default", uidLabel: "u-" + name}
	}
	f := &fake{sandboxes: []*runtimeapi.PodSandbox{
		{Id: "2", Labels: labels("web"), State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY},
		{Id: "1", Labels: labels("proxy"), Annotations: map[string]string{sourceAnnotation: "file"}},
	}}
	got, err := f.serve(t).Sandboxes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []Sandbox{
		{ID: "1", Namespace: "default", Name: "proxy", UID: "u-proxy", Ready: true, Static: true},
		{ID: "2", Namespace: "default", Name: "web", UID: "u-web"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRemove: containers that run first, each with its time; what has gone meanwhile
// needs nothing, and a runtime that refuses is heard.
func TestConditions(t *testing.T) {
	f := &fake{refuse: map[string]codes.Code{}}
	c := f.serve(t)
	got, err := c.Conditions(t.Context())
	want := []Condition{{Type: "RuntimeReady", OK: true}, {Type: "NetworkReady", Reason: "NetworkPluginNotReady", Message: "no configuration"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	f.refuse["status"] = codes.Unavailable
	if _, err := c.Conditions(t.Context()); err == nil {
		t.Error("no error")
	}
}

func TestRemove(t *testing.T) {
	running, exited := runtimeapi.ContainerState_CONTAINER_RUNNING, runtimeapi.ContainerState_CONTAINER_EXITED
	for _, tc := range []struct {
		name   string
		refuse map[string]codes.Code
		calls  []string
		err    string
	}{
		{"whole", nil, []string{"stop container a", "stop container b", "stop 1", "remove 1"}, ""},
		{"gone meanwhile", map[string]codes.Code{"stop container a": codes.NotFound, "stop 1": codes.NotFound, "remove 1": codes.NotFound},
			[]string{"stop container a", "stop container b", "stop 1", "remove 1"}, ""},
		{"stuck container", map[string]codes.Code{"stop container b": codes.Unknown}, []string{"stop container a", "stop container b"}, "stop container"},
		{"stuck sandbox", map[string]codes.Code{"stop 1": codes.Unknown}, []string{"stop container a", "stop container b", "stop 1"}, "stop sandbox"},
		{"stays", map[string]codes.Code{"remove 1": codes.Unknown}, []string{"stop container a", "stop container b", "stop 1", "remove 1"}, "remove sandbox"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &fake{refuse: tc.refuse, containers: []*runtimeapi.Container{
				{Id: "a", PodSandboxId: "1", State: running}, {Id: "b", PodSandboxId: "1", State: running},
				{Id: "c", PodSandboxId: "1", State: exited}, {Id: "d", PodSandboxId: "2", State: running},
			}}
			err := f.serve(t).Remove(t.Context(), "1", 5*time.Second)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Error(err)
			}
			slices.Sort(f.calls[:min(2, len(f.calls))])
			if diff := cmp.Diff(tc.calls, f.calls); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOpenWithoutRuntime(t *testing.T) {
	start := time.Now()
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "s")); err == nil {
		t.Error("nobody listens, and it answers")
	}
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("it took %s to see that nobody listens", took)
	}
}
