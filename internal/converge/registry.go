package converge

import (
	"maps"
	"slices"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/kind/artifact"
	"github.com/berth-dev/berth/internal/converge/kind/block"
	"github.com/berth-dev/berth/internal/converge/kind/check"
	"github.com/berth-dev/berth/internal/converge/kind/credential"
	"github.com/berth-dev/berth/internal/converge/kind/directory"
	"github.com/berth-dev/berth/internal/converge/kind/file"
	"github.com/berth-dev/berth/internal/converge/kind/image"
	"github.com/berth-dev/berth/internal/converge/kind/link"
	"github.com/berth-dev/berth/internal/converge/kind/module"
	"github.com/berth-dev/berth/internal/converge/kind/mount"
	"github.com/berth-dev/berth/internal/converge/kind/nftables"
	"github.com/berth-dev/berth/internal/converge/kind/nodeobject"
	"github.com/berth-dev/berth/internal/converge/kind/podnetwork"
	"github.com/berth-dev/berth/internal/converge/kind/serving"
	"github.com/berth-dev/berth/internal/converge/kind/sshd"
	"github.com/berth-dev/berth/internal/converge/kind/swap"
	"github.com/berth-dev/berth/internal/converge/kind/sysctl"
	"github.com/berth-dev/berth/internal/converge/kind/sysfs"
	"github.com/berth-dev/berth/internal/converge/kind/trust"
	"github.com/berth-dev/berth/internal/converge/kind/unit"
)

// builtin are the kinds of resources that berth knows.
var builtin = []kind.Kind{
	artifact.Kind{}, block.Kind{}, check.Kind{}, credential.Kind{}, directory.Kind{}, file.Kind{}, image.Kind{}, link.Kind{},
	module.Kind{}, mount.Kind{}, nftables.Kind{}, nodeobject.Kind{}, podnetwork.Kind{}, serving.Kind{}, sshd.Kind{}, swap.Kind{}, sysctl.Kind{}, sysfs.Kind{}, trust.Kind{}, unit.Kind{},
}

// The kinds' own errors, for the engine's users.
type (
	// MissingError is an artifact that is not to be had.
	MissingError = artifact.MissingError
	// NodeError is a Node object that could not be made as it is wanted.
	NodeError = nodeobject.Error
)

// Kinds are the names of the kinds that berth knows.
func Kinds() []string {
	var out []string
	for _, k := range builtin {
		out = append(out, k.Name())
	}
	return out
}

func register(more []kind.Kind) map[string]kind.Kind {
	out := map[string]kind.Kind{}
	for _, k := range append(append([]kind.Kind{}, builtin...), more...) {
		out[k.Name()] = k
	}
	return out
}

// having are the kinds that can do something besides, by name.
func having[T any](kinds map[string]kind.Kind) (out []T) {
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if k, ok := kinds[name].(T); ok {
			out = append(out, k)
		}
	}
	return out
}
