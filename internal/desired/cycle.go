package desired

import (
	"fmt"
	"slices"
	"strings"
)

// cycle is an error that names resources of which each comes after the next, the
// last after the first; nil if there are none.
func (s *State) cycle() error {
	after := map[ID][]ID{}
	for _, r := range s.Resources {
		after[r.ID()] = r.Order().After
	}
	settled := map[ID]bool{}
	for _, r := range s.Resources {
		if found := walk(after, r.ID(), nil, settled); found != nil {
			return fmt.Errorf("each comes after the next: %s", strings.Join(found, ", "))
		}
	}
	return nil
}

// walk follows After from a resource on a way; it returns the part of the way
// that is a cycle.
func walk(after map[ID][]ID, id ID, way []string, settled map[ID]bool) []string {
	if i := slices.Index(way, string(id)); i >= 0 {
		return append(way[i:], string(id))
	}
	if settled[id] {
		return nil
	}
	for _, next := range after[id] {
		if found := walk(after, next, append(way, string(id)), settled); found != nil {
			return found
		}
	}
	settled[id] = true
	return nil
}
