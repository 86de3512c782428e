package faults_test

import (
	"errors"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// An error at any effect fails the run with that error, but for a file system that gives
// no file two names, or none the attribute that says what berth wrote: there the run goes
// another way. Before the first name
// changes it leaves the machine as it was; the next run ends as if nothing had
// happened.
func TestErrorAnywhere(t *testing.T) {
	eachOfAll(t, func(t *testing.T, s scenario) {
		want, failures := s.undisturbed(t), 0
		visible := firstVisible(want.effects)
		for n := 1; n <= len(want.effects); n += stride {
			for _, errno := range errorsAt(n) {
				h := s.machine()
				before := foreign(h)
				in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.Fail, Err: errno}})
				_, err := s.run(h, in)
				hit := in.Hit()
				unmarked := hit != nil && hit.Op == "xattr" && hit.Detail == host.ProvenanceName && host.NoXattrs(errno)
				goesOn := unmarked || hit != nil && hit.Op == "link" && host.NoLinks(errno) // as on vfat
				if goesOn && err != nil || !goesOn && !errors.Is(err, errno) {
					t.Fatalf("%v at effect %v: the run returned %v", errno, hit, err)
				}
				if d := differences(before, foreign(h)); !goesOn && n < visible && len(d) > 0 {
					t.Fatalf("%v at effect %v, before anything changes: %q", errno, in.Hit(), d)
				}
				s.again(t, h)
				got := look(h)
				if goesOn && strings.HasPrefix(hit.Target, originals+"/") { // a copy, which is berth's own
					got.Tree[hit.Target] = strings.Replace(got.Tree[hit.Target], "-rw-------", "-rwxr-xr-x", 1)
				}
				ends := want.outcome
				if unmarked {
					ends, got = withoutProvenance(ends, hit.Target), withoutProvenance(got, hit.Target)
				}
				if d := diff(ends, got); d != "" {
					t.Fatalf("%v at effect %v: %s", errno, hit, d)
				}
				failures++
			}
		}
		t.Logf("%d effects, %d of them before anything shows, %d errors", len(want.effects), visible-1, failures)
	})
}

// provenance is what a file of the tree says of what berth wrote into it.
var provenance = regexp.MustCompile(` trusted\.berth="(\\.|[^"\\])*"`)

// withoutProvenance is an outcome in which the file of a temporary name says nothing of it.
func withoutProvenance(o outcome, temporary string) outcome {
	dir, base := path.Split(temporary)
	name := dir + strings.TrimSuffix(strings.TrimPrefix(base, ".berth."), ".new")
	o.Tree = maps.Clone(o.Tree)
	if text, ok := o.Tree[name]; ok {
		o.Tree[name] = provenance.ReplaceAllString(text, "")
	}
	return o
}

func errorsAt(n int) []syscall.Errno {
	all := []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EPERM}
	if !thorough {
		return all[n%3 : n%3+1]
	}
	return all
}

// foreign is the tree without berth's own state.
func foreign(h *memory.Host) map[string]string {
	tree := h.Tree()
	maps.DeleteFunc(tree, func(p, _ string) bool { return isOwn(p) })
	return tree
}

func isOwn(p string) bool {
	for _, dir := range []string{"/run/berth", "/var/lib/berth"} {
		if p == dir || strings.HasPrefix(p, dir+"/") {
			return true
		}
	}
	return false
}

// firstVisible is the number of the first effect that changes what is not
// berth's own: stage only makes temporary files and missing directories.
func firstVisible(effects []effect.Recorded) int {
	return 1 + slices.IndexFunc(effects, func(e effect.Recorded) bool {
		switch {
		case isOwn(e.Target):
			return false
		case e.Op == "rename", e.Op == "remove":
			base := path.Base(e.Target)
			return !strings.HasPrefix(base, ".berth.")
		}
		return e.Op == "value" || e.Op == "run" || e.Op == "daemon-reload"
	})
}
