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
	var ids []ID // most come after nothing, and are in no cycle
	for _, r := range s.Resources {
		if first := r.Order().After; len(first) > 0 {
			ids = append(ids, r.ID())
			after[r.ID()] = first
		}
	}
	walked := map[ID]bool{}
	for _, id := range ids {
		if found := walk(after, id, nil, walked); found != nil {
			return fmt.Errorf("each comes after the next: %s", strings.Join(found, ", "))
		}
	}
	return nil
}

// walk follows After from a resource on a way; it returns the part of the way
// that is a cycle.
func walk(after map[ID][]ID, id ID, way []string, walked map[ID]bool) []string {
	if i := slices.Index(way, string(id)); i >= 0 {
		return append(way[i:], string(id))
	}
	if walked[id] {
		return nil
	}
	for _, next := range after[id] {
		if found := walk(after, next, append(way, string(id)), walked); found != nil {
			return found
		}
	}
	walked[id] = true
	return nil
}
