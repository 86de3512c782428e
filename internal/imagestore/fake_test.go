package imagestore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	contentapi "github.com/containerd/containerd/api/services/content/v1"
	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	leasesapi "github.com/containerd/containerd/api/services/leases/v1"
	versionapi "github.com/containerd/containerd/api/services/version/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// fake is a containerd as far as this package speaks to one. Its state outlives
// its restarts.
type fake struct {
	contentapi.UnimplementedContentServer
	versionapi.UnimplementedVersionServer
	socket string

	mu     sync.Mutex
	server *grpc.Server
	blobs  map[string]*stored
	// ingests are uploads that are not committed, by their reference.
	ingests map[string][]byte
	locked  map[string]bool
	records map[string]*imagesapi.Image
	held    map[string]*heldLease
	// sent counts the bytes of content that came in.
	sent int64
	// fault, if set, is asked before each call and each message of an upload.
	fault func(what string) error
}

type stored struct {
	data   []byte
	labels map[string]string
}

type heldLease struct {
	*leasesapi.Lease
	blobs, ingests map[string]bool
}

// newFake makes one that does not listen yet. A socket's path has to be short.
func newFake(t *testing.T) *fake {
	t.Helper()
	dir, err := os.MkdirTemp("", "is")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{socket: filepath.Join(dir, "c", "s"), blobs: map[string]*stored{}, ingests: map[string][]byte{}, locked: map[string]bool{},
		records: map[string]*imagesapi.Image{}, held: map[string]*heldLease{}}
	t.Cleanup(func() {
		f.stop()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return f
}

func startFake(t *testing.T) *fake {
	t.Helper()
	f := newFake(t)
	f.start()
	return f
}

func (f *fake) start() {
	must(os.MkdirAll(filepath.Dir(f.socket), 0o700))
	l, err := net.Listen("unix", f.socket)
	must(err)
	s := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if err := f.check(ctx, filepath.Base(info.FullMethod)); err != nil {
			return nil, err
		}
		return next(ctx, req)
	}))
	contentapi.RegisterContentServer(s, f)
	imagesapi.RegisterImagesServer(s, imageService{fake: f})
	leasesapi.RegisterLeasesServer(s, leaseService{fake: f})
	versionapi.RegisterVersionServer(s, f)
	f.mu.Lock()
	f.server = s
	f.mu.Unlock()
	go func() { _ = s.Serve(l) }()
}

func (f *fake) stop() {
	f.mu.Lock()
	s := f.server
	f.server = nil
	f.mu.Unlock()
	if s != nil {
		s.Stop()
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// failing sets the fault of the calls to come.
func (f *fake) failing(fault func(what string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// knows says whether a name stands for an image.
func (f *fake) knows(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.records[name] != nil
}

// check refuses calls without the namespace, and those that a test's fault hits.
func (f *fake) check(ctx context.Context, what string) error {
	md, _ := metadata.FromIncomingContext(ctx)
	if got := md.Get(namespaceKey); len(got) != 1 || got[0] == "" {
		return status.Errorf(codes.FailedPrecondition, "namespace is %q", got)
	}
	f.mu.Lock()
	fault := f.fault
	f.mu.Unlock()
	if fault != nil {
		return fault(what)
	}
	return nil
}

// leaseOf is the lease of a call; nil if it has none.
func (f *fake) leaseOf(ctx context.Context) (*heldLease, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	ids := md.Get(leaseKey)
	if len(ids) == 0 {
		return nil, nil
	}
	l := f.held[ids[0]]
	if l == nil {
		return nil, status.Errorf(codes.NotFound, "lease %q: not found", ids[0])
	}
	return l, nil
}

func (f *fake) Info(_ context.Context, r *contentapi.InfoRequest) (*contentapi.InfoResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.blobs[r.Digest]
	if b == nil {
		return nil, status.Errorf(codes.NotFound, "content %s: not found", r.Digest)
	}
	return &contentapi.InfoResponse{Info: &contentapi.Info{Digest: r.Digest, Size: int64(len(b.data)), Labels: maps.Clone(b.labels)}}, nil
}

func (f *fake) Update(_ context.Context, r *contentapi.UpdateRequest) (*contentapi.UpdateResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.blobs[r.Info.Digest]
	for _, p := range r.UpdateMask.Paths {
		key := strings.TrimPrefix(p, "labels.")
		b.labels[key] = r.Info.Labels[key]
	}
	return &contentapi.UpdateResponse{}, nil
}

func (f *fake) Delete(_ context.Context, r *contentapi.DeleteContentRequest) (*emptypb.Empty, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.blobs, r.Digest)
	return &emptypb.Empty{}, nil
}

func (f *fake) Read(r *contentapi.ReadContentRequest, s contentapi.Content_ReadServer) error {
	f.mu.Lock()
	b := f.blobs[r.Digest]
	f.mu.Unlock()
	if err := f.check(s.Context(), "Read"); err != nil {
		return err
	}
	if b == nil {
		return status.Errorf(codes.NotFound, "content %s: not found", r.Digest)
	}
	for i := 0; i < len(b.data); i += 100 {
		if err := s.Send(&contentapi.ReadContentResponse{Offset: int64(i), Data: b.data[i:min(i+100, len(b.data))]}); err != nil {
			return err
		}
	}
	return nil
}

func (f *fake) Abort(_ context.Context, r *contentapi.AbortRequest) (*emptypb.Empty, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.ingests[r.Ref]; !ok {
		return nil, status.Errorf(codes.NotFound, "reference %s: not found", r.Ref)
	}
	delete(f.ingests, r.Ref)
	return &emptypb.Empty{}, nil
}

// Write follows containerd's: the lock, the lease, the offsets and the words of
// its errors.
func (f *fake) Write(s contentapi.Content_WriteServer) error {
	m, err := s.Recv()
	if err != nil {
		return err
	}
	if err := f.check(s.Context(), "STAT"); err != nil {
		return err
	}
	unlock, err := f.begin(s.Context(), m)
	if err != nil {
		return err
	}
	defer unlock()
	ref := m.Ref
	for {
		r, err := f.message(s.Context(), ref, m)
		if err != nil {
			return err
		}
		if err := s.Send(r); err != nil {
			return err
		}
		if m.Action == contentapi.WriteAction_COMMIT {
			return s.Send(r)
		}
		if m, err = s.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := f.check(s.Context(), m.Action.String()); err != nil {
			return err
		}
	}
}

func (f *fake) begin(ctx context.Context, m *contentapi.WriteContentRequest) (unlock func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	lease, err := f.leaseOf(ctx)
	if err != nil {
		return nil, err
	}
	if f.blobs[m.Expected] != nil {
		if lease != nil {
			lease.blobs[m.Expected] = true
		}
		return nil, status.Errorf(codes.AlreadyExists, "content %s: already exists", m.Expected)
	}
	if f.locked[m.Ref] {
		return nil, status.Errorf(codes.Unavailable, "ref %s locked for 1s (since now): unavailable", m.Ref)
	}
	if lease != nil {
		lease.ingests[m.Ref] = true
	}
	if f.ingests[m.Ref] == nil {
		f.ingests[m.Ref] = []byte{}
	}
	f.locked[m.Ref] = true
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.locked, m.Ref)
	}, nil
}

func (f *fake) message(ctx context.Context, ref string, m *contentapi.WriteContentRequest) (*contentapi.WriteContentResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &contentapi.WriteContentResponse{Action: m.Action}
	if m.Action != contentapi.WriteAction_STAT {
		if m.Offset > 0 && m.Offset != int64(len(f.ingests[ref])) {
			return nil, status.Errorf(codes.OutOfRange, "write @%d must occur at current offset %d", m.Offset, len(f.ingests[ref]))
		}
		f.ingests[ref] = append(slices.Clone(f.ingests[ref][:m.Offset]), m.Data...)
		f.sent += int64(len(m.Data))
	}
	r.Offset = int64(len(f.ingests[ref]))
	if m.Action == contentapi.WriteAction_COMMIT {
		return r, f.commit(ctx, ref, m)
	}
	return r, nil
}

func (f *fake) commit(ctx context.Context, ref string, m *contentapi.WriteContentRequest) error {
	data := f.ingests[ref]
	if m.Total > 0 && m.Total != int64(len(data)) {
		return status.Errorf(codes.FailedPrecondition, "%q failed size validation: %d != %d: failed precondition", ref, len(data), m.Total)
	}
	if got := sum(data); got != m.Expected {
		return status.Errorf(codes.FailedPrecondition, "unexpected commit digest %s, expected %s: failed precondition", got, m.Expected)
	}
	if f.blobs[m.Expected] != nil {
		return status.Errorf(codes.AlreadyExists, "content %s: already exists", m.Expected)
	}
	labels := map[string]string{}
	maps.Copy(labels, m.Labels)
	f.blobs[m.Expected] = &stored{bytes.Clone(data), labels}
	delete(f.ingests, ref)
	lease, err := f.leaseOf(ctx)
	if lease != nil {
		lease.blobs[m.Expected] = true
	}
	return err
}

func sum(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }
