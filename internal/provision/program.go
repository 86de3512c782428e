package provision

import (
	"debug/buildinfo"
	"runtime/debug"

	"github.com/berth-dev/berth/internal/component/packetfilter"
	"github.com/berth-dev/berth/internal/host"
)

// programPaths are the names under which berth is installed, in the order in which
// units call it.
var programPaths = []string{packetfilter.Program, "/usr/local/bin/berth", "/usr/bin/berth"}

// ownProgram is the path by which units call this program: the first of the
// installed names that holds the same build, whichever one it was started by; else
// its own, which says nothing of another root.
func (s FactsSource) ownProgram(h host.FS) string {
	own, ok := debug.ReadBuildInfo()
	for _, p := range programPaths {
		if at := resolve(h, p); ok && s.Program != "" && at != "" && builtAs(h, at) == own.String() {
			return p
		}
	}
	if s.Offline {
		return ""
	}
	return s.Program
}

// builtAs is the build information of a program; "" for one that has none.
func builtAs(h host.FS, p string) string {
	f, err := h.Open(p)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := buildinfo.Read(f)
	if err != nil {
		return ""
	}
	return info.String()
}
