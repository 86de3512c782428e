package gpu

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/lazyregexp"
)

// profiles are the published names of partitions: the number by which nvidia-smi makes
// one, and how many of them a GPU of seven slices takes.
var profiles = map[string]struct {
	id    string
	count int
}{"MIG1g": {"19", 7}, "MIG2g": {"14", 3}, "MIG3g": {"9", 2}, "MIG4g": {"5", 1}, "MIG7g": {"0", 1}}

// Partition is one part of a GPU.
type Partition struct {
	// ID is by what nvidia-smi makes it: a number, or a name as in 1g.5gb.
	ID string `json:"id"`
	// Slices is the size as nvidia-smi tells it: "1g".
	Slices string `json:"slices"`
}

// named is a name that nvidia-smi has for partitions.
var named = lazyregexp.New(`^([1-7]g)\.[0-9]{1,3}gb$`)

// Partitions are those of each GPU: the layout, else as many of one profile as there is
// room for. unknown is a name that says nothing; "" where all do.
func Partitions(profile string, layout []string) (out []Partition, unknown string) {
	if len(layout) == 0 && profile != "" {
		p, ok := profiles[profile]
		if !ok {
			return nil, profile
		}
		return slices.Repeat([]Partition{{p.id, strings.TrimPrefix(profile, "MIG")}}, p.count), ""
	}
	for _, name := range layout {
		p, published := profiles[name]
		m := named().FindStringSubmatch(name)
		switch {
		case published:
			out = append(out, Partition{p.id, strings.TrimPrefix(name, "MIG")})
		case m != nil:
			out = append(out, Partition{name, m[1]})
		default:
			return nil, name
		}
	}
	return out, ""
}
