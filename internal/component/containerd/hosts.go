package containerd

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

// Registry says from which hosts the images of a registry come.
type Registry struct {
	// Name is the registry's as images carry it, or "_default".
	Name string
	// Server is asked last; empty: the registry itself.
	Server string
	// Hosts are asked before, in order. Two with one URL are the same in all else.
	Hosts []RegistryHost
}

// RegistryHost is one of them.
type RegistryHost struct {
	URL          string   `toml:"-"`
	Capabilities []string `toml:"capabilities"`
	CAs          []string `toml:"ca,omitempty"`
	OverridePath bool     `toml:"override_path,omitempty"`
}

// Equal says whether both are written as the same.
func (h RegistryHost) Equal(o RegistryHost) bool {
	return h.URL == o.URL && slices.Equal(h.Capabilities, o.Capabilities) && slices.Equal(h.CAs, o.CAs) && h.OverridePath == o.OverridePath
}

// HostsFile is where containerd reads of a registry's hosts.
func HostsFile(registry string) string { return HostsDir + "/" + registry + "/hosts.toml" }

// File is that file. What is there stays as it is where it says the same. The order of
// its tables counts, so that each is marshalled by itself.
func (r Registry) File(there string) (*desired.File, error) {
	text := "# Written by berth.\n"
	if r.Server != "" {
		b, err := toml.Marshal(map[string]string{"server": r.Server})
		if err != nil {
			return nil, err
		}
		text += string(b)
	}
	for _, h := range distinct(r.Hosts) {
		b, err := toml.Marshal(h)
		if err != nil {
			return nil, err
		}
		text += fmt.Sprintf("\n[host.%q]\n%s", h.URL, b)
	}
	if sameHosts(there, text) {
		text = there
	}
	return plain(HostsFile(r.Name), text), nil
}

// distinct leaves out what stands there again: TOML has each table once, and a host is
// asked once.
func distinct(hosts []RegistryHost) []RegistryHost {
	var out []RegistryHost
	for _, h := range hosts {
		if !slices.ContainsFunc(out, h.Equal) {
			out = append(out, h)
		}
	}
	return out
}

// sameHosts says whether containerd reads the same in two texts.
func sameHosts(a, b string) bool {
	var one, other map[string]any
	return toml.Unmarshal([]byte(a), &one) == nil && toml.Unmarshal([]byte(b), &other) == nil &&
		reflect.DeepEqual(one, other) && slices.Equal(hostOrder(a), hostOrder(b))
}

var hostTable = lazyregexp.New(`(?m)^\s*\[\s*host\s*\.\s*["']([^"']*)["']\s*\]`)

// hostOrder are the hosts in their order, which a reader of TOML loses.
func hostOrder(text string) []string {
	var out []string
	for _, m := range hostTable().FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}
