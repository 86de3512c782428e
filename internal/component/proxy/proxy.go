// Package proxy makes the programs of the machine reach servers outside through
// an HTTP proxy.
package proxy

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/paths"
)

// Paths; that of kubelet's drop-in and of apt's file are as published.
const (
	// VariablesFile holds the variables for services. It is a file of its own since
	// systemd tells everybody what stands in a unit.
	VariablesFile = paths.SettingsDir + "/proxy.env"
	DropIn        = "10-httpproxy.conf"
	Environment   = "/etc/environment"
	AptDir        = "/etc/apt/apt.conf.d"
	AptFile       = AptDir + "/95proxy"
)

// Settings are the way out.
type Settings struct {
	// HTTP and HTTPS are URLs; the scheme may be missing. "" is no proxy.
	HTTP, HTTPS desired.Secret
	// Direct are names, domains, addresses and networks that are reached directly.
	Direct []string
	// Services use the proxy: names of units.
	Services []string
	// Apt: the machine has apt.
	Apt bool
}

// Resources are the files, or nothing where there is no proxy. A service is to come
// after them and to restart with VariablesFile.
func Resources(s Settings) []desired.Resource {
	if s.HTTP == "" && s.HTTPS == "" {
		return nil
	}
	out := []desired.Resource{secret(VariablesFile, s.file())}
	for _, unit := range s.Services {
		out = append(out, &desired.File{
			Path: path.Join("/etc/systemd/system", unit+".d", DropIn), Mode: 0o644, Life: desired.Managed,
			Content: desired.Text(unitfile.Text(unitfile.In("Service", "EnvironmentFile", VariablesFile))),
		})
	}
	if public := s.public(); public.HTTP != "" || public.HTTPS != "" {
		out = append(out, &desired.Block{Path: Environment, Name: "proxy", Keys: public.variables(), Mode: 0o644})
	}
	if s.Apt {
		out = append(out, secret(AptFile, s.apt()))
	}
	return out
}

func secret(p, text string) desired.Resource {
	return &desired.File{Path: p, Content: desired.SecretBytes([]byte(text)), Mode: 0o600, Life: desired.Managed}
}

// public is without addresses that hold a password: everybody reads the machine's
// environment.
func (s Settings) public() Settings {
	if Private(s.HTTP) {
		s.HTTP = ""
	}
	if Private(s.HTTPS) {
		s.HTTPS = ""
	}
	return s
}

// Private says whether the address of a proxy holds a user or a password.
func Private(address desired.Secret) bool {
	u, err := url.Parse(withScheme(address.Reveal()))
	return err != nil || u.User != nil
}

func withScheme(address string) string {
	if strings.Contains(address, "://") {
		return address
	}
	return "http://" + address
}

// variables are in both spellings: programs differ in which one they read.
func (s Settings) variables() map[string]string {
	all := map[string]string{}
	for name, value := range map[string]string{
		"http_proxy": s.HTTP.Reveal(), "https_proxy": s.HTTPS.Reveal(), "no_proxy": strings.Join(s.Direct, ","),
	} {
		if value != "" {
			all[name], all[strings.ToUpper(name)] = value, value
		}
	}
	return all
}

// Environ is what a program's environment says of the proxy, NAME=value each.
func (s Settings) Environ() []string {
	var out []string
	for name, value := range s.variables() {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return out
}

func (s Settings) file() string {
	vars := s.variables()
	text := "# Written by berth.\n"
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		for _, spelling := range []string{name, strings.ToLower(name)} {
			if value := vars[spelling]; value != "" {
				text += unitfile.Variable(spelling, value)
			}
		}
	}
	return text
}

// apt is apt's own setting: cron jobs and timers run it without the machine's
// environment. It has no list of direct servers, but one at a time.
func (s Settings) apt() string {
	text := "// Written by berth.\n"
	for _, p := range []struct {
		name    string
		address desired.Secret
	}{{"http", s.HTTP}, {"https", s.HTTPS}} {
		if p.address != "" {
			text += "Acquire::" + p.name + `::Proxy "` + strings.ReplaceAll(withScheme(p.address.Reveal()), `"`, "%22") + "\";\n"
		}
	}
	for _, host := range s.Direct {
		if direct(host) && s.HTTP != "" {
			text += "Acquire::http::Proxy::" + host + " \"DIRECT\";\n"
		}
		if direct(host) && s.HTTPS != "" {
			text += "Acquire::https::Proxy::" + host + " \"DIRECT\";\n"
		}
	}
	return text
}

// direct says whether an entry is the name or address of one server, as apt takes
// it: domains and networks apt can't express.
func direct(entry string) bool {
	return entry != "" && !strings.HasPrefix(entry, ".") && !strings.ContainsAny(entry, "*/:\"; \t\n{}")
}
