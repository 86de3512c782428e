// Package leasetest is an API server's Leases in memory, for tests: names are
// unique, and a write over another version is a conflict.
package leasetest

import (
	"context"
	"strconv"
	"sync"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Server has Leases of one namespace.
type Server struct {
	mu     sync.Mutex
	leases map[string]*coordination.Lease
	writes int
	fault  error
	told   chan struct{}
}

// New has none.
func New() *Server {
	return &Server{leases: map[string]*coordination.Lease{}, told: make(chan struct{}, 1)}
}

var resource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// Fail makes all calls fail with an error until it is nil.
func (s *Server) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = err
}

// Writes counts what was written.
func (s *Server) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// Changed tells of writes, as a watch does.
func (s *Server) Changed() <-chan struct{} { return s.told }

// Remove takes a Lease away.
func (s *Server) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.leases, name)
}

// GetLease implements the client's call.
func (s *Server) GetLease(_ context.Context, _, name string) (*coordination.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault != nil {
		return &coordination.Lease{}, s.fault
	}
	l := s.leases[name]
	if l == nil {
		return &coordination.Lease{}, apierrors.NewNotFound(resource, name)
	}
	return l.DeepCopy(), nil
}

// CreateLease implements the client's call.
func (s *Server) CreateLease(_ context.Context, l *coordination.Lease) (*coordination.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault != nil {
		return &coordination.Lease{}, s.fault
	}
	if s.leases[l.Name] != nil {
		return &coordination.Lease{}, apierrors.NewAlreadyExists(resource, l.Name)
	}
	return s.keep(l), nil
}

// UpdateLease implements the client's call.
func (s *Server) UpdateLease(_ context.Context, l *coordination.Lease) (*coordination.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.leases[l.Name]
	switch {
	case s.fault != nil:
		return &coordination.Lease{}, s.fault
	case old == nil:
		return &coordination.Lease{}, apierrors.NewNotFound(resource, l.Name)
	case old.ResourceVersion != l.ResourceVersion:
		return &coordination.Lease{}, apierrors.NewConflict(resource, l.Name, nil)
	}
	return s.keep(l), nil
}

func (s *Server) keep(l *coordination.Lease) *coordination.Lease {
	s.writes++
	l = l.DeepCopy()
	l.ResourceVersion = strconv.Itoa(s.writes)
	s.leases[l.Name] = l
	select {
	case s.told <- struct{}{}:
	default:
	}
	return l.DeepCopy()
}
