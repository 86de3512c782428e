package desired

import (
	"fmt"
	"path"
)

// ResourceError is a resource that can't be in a state.
type ResourceError struct {
	ID ID
	// Field is the resource's.
	Field string
	// Path is where it would be, or what another resource has there already; empty
	// for what has no place in the file tree.
	Path string
	Err  error
}

// Error names the resource.
func (e *ResourceError) Error() string { return fmt.Sprintf("%s: %v", e.ID, e.Err) }

// Unwrap returns the cause.
func (e *ResourceError) Unwrap() error { return e.Err }

func first(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	return paths[0]
}

// clashes finds paths at which two resources keep a file, or the one a file and
// the other a directory.
func clashes(rs []Resource) []error {
	o := occupancy{by: make(map[string]Resource, len(rs))}
	for _, r := range rs {
		for _, p := range r.FilePaths() {
			o.free(r, p)
			o.by[p] = r
		}
	}
	for _, r := range rs {
		for _, p := range r.DirectoryPaths() {
			o.free(r, p)
		}
		for _, p := range append(r.FilePaths(), r.DirectoryPaths()...) {
			for above := path.Dir(p); above != "/" && above != "."; above = path.Dir(above) {
				o.free(r, above)
			}
		}
	}
	return o.errs
}

// occupancy is which resource keeps a file at a path.
type occupancy struct {
	by   map[string]Resource
	errs []error
}

// free complains where a file is at a path that a resource wants otherwise.
func (o *occupancy) free(r Resource, p string) {
	if other := o.by[p]; other != nil {
		o.errs = append(o.errs, &ResourceError{ID: r.ID(), Field: r.Order().Field, Path: p,
			Err: fmt.Errorf("%s stands in its way at %s", other.ID(), p)})
	}
}
