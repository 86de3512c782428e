package containerd

import (
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/berth-dev/berth/internal/desired"
)

// Mirror is a registry that stands in for another.
type Mirror struct {
	// Registry is the name that images carry: mcr.microsoft.com.
	Registry string
	// Server is where they are: host, or host/path, optionally with a port.
	Server string
	// InPath: repositories are below the server's path, and the address is taken as
	// it is. Else the server has them under their own names.
	InPath bool
}

type hostsFile struct {
	Host map[string]hostEntry `toml:"host"`
}

type hostEntry struct {
	Capabilities []string            `toml:"capabilities"`
	OverridePath bool                `toml:"override_path,omitempty"`
	Header       map[string][]string `toml:"header,omitempty"`
}

func (m Mirror) hosts() hostsFile {
	pulls := []string{"pull", "resolve"}
	if m.InPath {
		return hostsFile{Host: map[string]hostEntry{m.url(): {Capabilities: pulls, OverridePath: true}}}
	}
	return hostsFile{Host: map[string]hostEntry{"https://" + m.Server: {
		Capabilities: pulls, Header: map[string][]string{"X-Forwarded-For": {m.Registry}},
	}}}
}

// url is where the mirror's registry API begins: a path of the server stands
// behind the API's own prefix, as part of the repository name.
func (m Mirror) url() string {
	host, path, _ := strings.Cut(strings.Trim(m.Server, "/"), "/")
	if path != "" {
		path += "/"
	}
	return "https://" + host + "/v2/" + path
}

func (m Mirror) file() (desired.Resource, error) {
	b, err := toml.Marshal(m.hosts())
	if err != nil {
		return nil, err
	}
	return &desired.File{
		Path: HostsDir + "/" + m.Registry + "/hosts.toml", Mode: 0o644, Life: desired.Managed,
		Content: desired.Text("# Written by berth.\n" + string(b)),
	}, nil
}
