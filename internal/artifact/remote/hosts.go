package remote

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// Host is a server that has what a registry's references name.
type Host struct {
	// Base is the URL of its API, "https://mirror.example/v2"; "" is the registry
	// itself.
	Base string
	// Resolves says that it may be asked what a tag means, Pulls that it is asked for
	// content.
	Resolves, Pulls bool
	// CAs and Clients are paths of PEM files: certificates that are trusted besides
	// the machine's own, and pairs of certificate and key to show, the key "" where
	// it is in the same file.
	CAs     []string
	Clients [][2]string
	// Header goes with each request.
	Header http.Header
	// SkipVerify: whoever answers is believed to be the host. Then only what has a
	// digest is asked for.
	SkipVerify bool
}

// IsRegistry says that it is the registry itself, as without hosts.toml.
func (h *Host) IsRegistry() bool {
	return h.Base == "" && len(h.CAs)+len(h.Clients)+len(h.Header) == 0 && !h.SkipVerify
}

// hostSettings are what hosts.toml says of one host.
type hostSettings struct {
	Capabilities []string       `toml:"capabilities"`
	CA           any            `toml:"ca"`
	Client       any            `toml:"client"`
	SkipVerify   bool           `toml:"skip_verify"`
	Header       map[string]any `toml:"header"`
	OverridePath bool           `toml:"override_path"`
}

// ParseHosts reads a hosts.toml of containerd that is in dir: the hosts in the
// order in which they are asked, the registry itself or the server in its place
// last.
func ParseHosts(text []byte, dir string) ([]Host, error) {
	var file struct {
		hostSettings
		Server string                  `toml:"server"`
		Host   map[string]hostSettings `toml:"host"`
	}
	if err := toml.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	var out []Host
	for _, name := range hostOrder(text) {
		h, err := file.Host[name].host(name, dir)
		if err != nil {
			return nil, fmt.Errorf("host %q: %w", name, err)
		}
		out = append(out, h)
	}
	last, err := file.host(file.Server, dir)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	return append(out, last), nil
}

// hostOrder are the hosts in the order of the text: they are tables.
func hostOrder(text []byte) []string {
	var out []string
	p := unstable.Parser{}
	p.Reset(text)
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.Table {
			continue
		}
		keys := e.Key()
		if !keys.Next() || string(keys.Node().Data) != "host" || !keys.Next() {
			continue
		}
		if name := string(keys.Node().Data); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func (s hostSettings) host(server, dir string) (Host, error) {
	h := Host{SkipVerify: s.SkipVerify}
	var err error
	if h.Base, err = apiOf(server, s.OverridePath); err != nil {
		return h, err
	}
	for _, c := range s.Capabilities {
		switch c = strings.ToLower(c); c {
		case "pull":
			h.Pulls = true
		case "resolve":
			h.Resolves = true
		case "push", "referrers":
		default:
			return h, fmt.Errorf("%q is no capability", c)
		}
	}
	if len(s.Capabilities) == 0 {
		h.Pulls, h.Resolves = true, true
	}
	if h.CAs, err = texts(s.CA, dir); err != nil {
		return h, fmt.Errorf("ca: %w", err)
	}
	if h.Clients, err = pairs(s.Client, dir); err != nil {
		return h, fmt.Errorf("client: %w", err)
	}
	h.Header, err = headers(s.Header)
	return h, err
}

// apiOf is where the API of a server begins.
func apiOf(server string, asIs bool) (string, error) {
	if server == "" {
		return "", nil
	}
	if !strings.HasPrefix(server, "http") {
		server = "https://" + server
	}
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("it is no http or https URL without user")
	}
	if u.Path != "" {
		u.Path = path.Clean(u.Path)
	}
	if !asIs && !strings.HasSuffix(u.Path, "/v2") {
		u.Path = strings.TrimSuffix(u.Path, "/") + "/v2"
	}
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(u.EscapedPath(), "/"), nil
}

// texts takes a path or a list of paths.
func texts(v any, dir string) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{absolute(v, dir)}, nil
	case []any:
		var out []string
		for _, one := range v {
			text, ok := one.(string)
			if !ok {
				return nil, fmt.Errorf("%T is no path", one)
			}
			out = append(out, absolute(text, dir))
		}
		return out, nil
	}
	return nil, fmt.Errorf("%T is no path", v)
}

func absolute(p, dir string) string {
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(dir, p)
}

// pairs takes a path, a list of paths, or a list of pairs of them.
func pairs(v any, dir string) ([][2]string, error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var out [][2]string
	for _, one := range list {
		names, err := texts(one, dir)
		_, pair := one.([]any)
		switch {
		case err != nil:
			return nil, err
		case pair && len(names) != 2:
			return nil, fmt.Errorf("%d paths are no pair", len(names))
		case pair:
			out = append(out, [2]string{names[0], names[1]})
		case len(names) == 1:
			out = append(out, [2]string{names[0]})
		}
	}
	return out, nil
}

func headers(values map[string]any) (http.Header, error) {
	if len(values) == 0 {
		return nil, nil
	}
	out := http.Header{}
	for name, v := range values {
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, one := range list {
			text, ok := one.(string)
			if !ok {
				return nil, fmt.Errorf("header %q: %T is no text", name, one)
			}
			out.Add(name, text)
		}
	}
	return out, nil
}
