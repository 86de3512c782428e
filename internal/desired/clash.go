package desired

import (
	"fmt"
	"path"
	"slices"
)

// ResourceError is a resource that can't be in a state.
type ResourceError struct {
	ID ID
	// Field is the resource's.
	Field string
	// Path is where it would be, or what another resource has there already; empty
	// for what has no path.
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

// Clashes finds paths at which two resources keep a file, or the one a file and the
// other a directory, or of which two ask for the mode. real is where a path leads: two
// spellings of one are one path. Each error is a *ResourceError.
func Clashes(rs []Resource, real func(path string) string) []error {
	o := occupancy{files: make(map[string]Resource, len(rs)), dirs: map[string]Resource{}}
	for _, r := range rs {
		for _, p := range r.FilePaths() {
			o.take(r, real(p), o.files)
		}
		if d, ok := r.(*Directory); ok {
			o.take(r, real(d.Path), o.dirs)
		}
	}
	for _, r := range rs {
		for _, p := range r.DirectoryPaths() {
			o.free(r, real(p), o.files)
		}
		for _, p := range slices.Concat(r.FilePaths(), r.DirectoryPaths()) {
			for above := path.Dir(real(p)); above != "/" && above != "."; above = path.Dir(above) {
				o.free(r, above, o.files)
			}
		}
	}
	return o.errs
}

// occupancy is which resource keeps a file at a path, and which asks for the mode of a
// directory.
type occupancy struct {
	files, dirs map[string]Resource
	errs        []error
}

// take gives r a path. Several may have parts of one file.
func (o *occupancy) take(r Resource, p string, by map[string]Resource) {
	if !isPart(r) || !isPart(by[p]) {
		o.free(r, p, by)
	}
	by[p] = r
}

// free complains where another resource has a path that r wants otherwise.
func (o *occupancy) free(r Resource, p string, by map[string]Resource) {
	if other := by[p]; other != nil {
		o.errs = append(o.errs, &ResourceError{ID: r.ID(), Field: r.Order().Field, Path: p,
			Err: fmt.Errorf("%s stands in its way at %s", other.ID(), p)})
	}
}

func isPart(r Resource) bool { _, ok := r.(*Block); return ok }
