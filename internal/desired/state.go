package desired

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Owner says which contract put a resource on the machine. A plan removes only
// what its own owner put there.
type Owner string

// The owners that a ledger may name.
const (
	OwnerAKS   Owner = "aks"
	OwnerOSC   Owner = "osc"
	OwnerNode  Owner = "node"
	OwnerBerth Owner = "berth"
)

// Known says whether a ledger may name the owner.
func (o Owner) Known() bool {
	switch o {
	case OwnerAKS, OwnerOSC, OwnerNode, OwnerBerth:
		return true
	}
	return false
}

// ID names one resource of a machine: its kind, a colon, and what identifies it
// within that kind, e.g. "file:/etc/kubernetes/certs/ca.crt".
type ID string

// Resource is one item of a desired state. The set of kinds is closed: see the
// types of this package that embed Base.
type Resource interface {
	// ID is stable over runs and unique in a state.
	ID() ID
	// Kind is the part of ID before the colon.
	Kind() string
	// Order is the part that every kind has.
	Order() *Base
	// FilePaths are where it keeps what is no directory, DirectoryPaths where it needs
	// one.
	FilePaths() []string
	DirectoryPaths() []string
	// Validate refuses a resource that could never be applied.
	Validate() error
}

// Base is what every resource carries.
type Base struct {
	// After lists resources that must be in place before this one acts.
	// Unknown ids and circles are refused by Seal.
	After []ID `json:"after,omitempty"`
	// Field is the contract field this resource comes from, for messages.
	Field string `json:"field,omitempty"`
}

// Order returns the embedded base.
func (b *Base) Order() *Base { return b }

// FilePaths implements Resource: most kinds keep none.
func (b *Base) FilePaths() []string { return nil }

// DirectoryPaths implements Resource.
func (b *Base) DirectoryPaths() []string { return nil }

// FieldNote is a remark about one field of a contract, by its path as the
// document spells it.
type FieldNote struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// State is what must be true of a machine. Build it with Add and Seal it before
// use: sealed states are deterministic in order and content.
type State struct {
	Owner     Owner
	Resources []Resource
	// Unused are set fields that have no effect, with the reason.
	Unused []FieldNote
	// Partial are set fields of which only a part is in force, with what is not.
	Partial []FieldNote
	// Unhandled are paths of set fields that this version doesn't act on yet.
	Unhandled []string
}

// Add appends resources; nil ones are ignored, so that a component may return
// none.
func (s *State) Add(rs ...Resource) {
	for _, r := range rs {
		if r != nil {
			s.Resources = append(s.Resources, r)
		}
	}
}

// Seal sorts the state, validates every resource and checks that ids are unique,
// that no two want one path, and that every reference names a resource of the
// state, without a circle. Its error joins a *ResourceError for each resource that
// is wrong.
func (s *State) Seal() error {
	s.sort()
	slices.SortFunc(s.Unused, func(a, b FieldNote) int { return cmp.Compare(a.Path, b.Path) })
	slices.SortFunc(s.Partial, func(a, b FieldNote) int { return cmp.Compare(a.Path, b.Path) })
	slices.Sort(s.Unhandled)
	known := make(map[ID]bool, len(s.Resources))
	var errs []error
	for _, r := range s.Resources {
		id, err := r.ID(), r.Validate()
		if known[id] {
			err = errors.New("it is in the state twice")
		}
		known[id] = true
		if err != nil {
			errs = append(errs, &ResourceError{ID: id, Field: r.Order().Field, Path: first(r.FilePaths()), Err: err})
		}
	}
	if len(errs) == 0 {
		errs = Clashes(s.Resources, func(p string) string { return p })
	}
	for _, r := range s.Resources {
		errs = append(errs, unknownRefs(r, known)...)
	}
	return errors.Join(append(errs, s.cycle())...)
}

// sort orders the resources by their ids, each of which is made once.
func (s *State) sort() {
	type identified struct {
		id ID
		r  Resource
	}
	all := make([]identified, len(s.Resources))
	for i, r := range s.Resources {
		all[i] = identified{r.ID(), r}
	}
	slices.SortStableFunc(all, func(a, b identified) int { return cmp.Compare(a.id, b.id) })
	for i, x := range all {
		s.Resources[i] = x.r
	}
}

func unknownRefs(r Resource, known map[ID]bool) []error {
	var errs []error
	for _, id := range r.Order().After {
		if !known[id] {
			errs = append(errs, fmt.Errorf("%s comes after %s, which is not in the state", r.ID(), id))
		}
	}
	return errs
}

// Lookup returns the resource with an id, or nil.
func (s *State) Lookup(id ID) Resource {
	i, ok := slices.BinarySearchFunc(s.Resources, id, func(r Resource, id ID) int { return cmp.Compare(r.ID(), id) })
	if !ok {
		return nil
	}
	return s.Resources[i]
}

// MarshalJSON prints the state with each resource's kind and id beside its
// fields; secret content appears redacted.
func (s *State) MarshalJSON() ([]byte, error) {
	type item struct {
		ID   ID       `json:"id"`
		Kind string   `json:"kind"`
		Spec Resource `json:"spec"`
	}
	items := make([]item, 0, len(s.Resources))
	for _, r := range s.Resources {
		items = append(items, item{r.ID(), r.Kind(), r})
	}
	return json.Marshal(struct {
		Owner     Owner  `json:"owner"`
		Resources []item `json:"resources"`
	}{s.Owner, items})
}
