package localdns

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

// What keeps the file of addresses has the published names. The file goes when the
// server stops.
const (
	HostsFile  = RunDir + "/hosts"
	hostsName  = "aks-localdns-hosts-setup"
	HostsUnit  = hostsName + ".service"
	HostsTimer = hostsName + ".timer"
)

// usualRefresh is how often names are looked up, in seconds, where nobody says.
const usualRefresh = 15 * 60

// hosts is the timer that keeps the file, besides each start of the server.
func (s Settings) hosts() []desired.Resource {
	every := cmp.Or(s.Refresh, usualRefresh)
	service := unitfile.Text(
		unitfile.In("Unit", "Description", "Look up the names in "+HostsFile, "After", Unit),
		unitfile.In("Service", "Type", "oneshot", "ExecStart", strings.Join(append([]string{unitfile.Word(s.Berth), "node localdns hosts"}, s.words()...), " ")))
	timer := unitfile.Text(
		unitfile.In("Unit", "Description", "Look up the names in "+HostsFile+" from time to time"),
		unitfile.In("Timer", "OnActiveSec", fmt.Sprintf("%ds", every), "OnUnitActiveSec", fmt.Sprintf("%ds", every), "AccuracySec", fmt.Sprintf("%ds", min(60, max(1, every/10)))),
		unitfile.In("Install", "WantedBy", "timers.target"))
	files := []desired.Resource{
		plain(unitDir+HostsUnit, service), plain(unitDir+HostsTimer, timer),
	}
	u := &desired.Unit{Name: HostsTimer, Enablement: desired.Enabled, Activation: desired.Started, Triggers: []string{unitDir + HostsUnit}}
	for _, r := range files {
		u.After = append(u.After, r.ID())
	}
	return append(files, u)
}

// words are arguments whatever stands in them: a name that nobody can look up is said
// to be one, and says nothing to systemd.
func (s Settings) words() []string {
	out := []string{"--"}
	for _, name := range s.Names {
		if !plainName().MatchString(name) {
			name = quoted(name)
		}
		out = append(out, name)
	}
	return out
}

var plainName = lazyregexp.New(`^[A-Za-z0-9_.*-]+$`)

// quoted is a word of a command line as systemd.service(5) and systemd.syntax(7) read
// it. A NUL no argument can hold.
func quoted(word string) string {
	var b strings.Builder
	for _, r := range strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", "$$", "%", "%%", "\x00", "?").Replace(word) {
		if unicode.IsControl(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return `"` + b.String() + `"`
}

// Entry is the addresses of a name.
type Entry struct {
	Name      string
	Addresses []netip.Addr
}

// HostsText is the file for entries.
func HostsText(entries []Entry) string {
	var b strings.Builder
	b.WriteString("# Written by berth: addresses of names that this node can't do without.\n")
	for _, e := range entries {
		for _, a := range e.Addresses {
			b.WriteString(a.String() + " " + e.Name + "\n")
		}
	}
	return b.String()
}

// ReadHosts are the addresses that a file has for a name.
func ReadHosts(text, name string) []netip.Addr {
	var out []netip.Addr
	for line := range strings.Lines(text) {
		fields := strings.Fields(strings.SplitN(line, "#", 2)[0])
		if len(fields) < 2 || !slices.Contains(fields[1:], name) {
			continue
		}
		if a, err := netip.ParseAddr(fields[0]); err == nil {
			out = append(out, a)
		}
	}
	return out
}
