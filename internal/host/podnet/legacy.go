package podnet

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/berth-dev/berth/internal/host"
)

// legacy are the rules that the kernel keeps outside nf_tables, one family each:
// where it says that it has tables, and the programs that know them.
var legacy = []struct{ names, program string }{
	{"/proc/net/ip_tables_names", "iptables-legacy"},
	{"/proc/net/ip6_tables_names", "ip6tables-legacy"},
}

// removeLegacy takes our chains out of the tables of the legacy iptables.
func (n Network) removeLegacy(ctx context.Context) (removed []string, err error) {
	var errs []error
	for _, l := range legacy {
		if n.Files == nil {
			break
		}
		text, err := n.Files.ReadFile(l.names)
		if errors.Is(err, fs.ErrNotExist) || len(strings.TrimSpace(string(text))) == 0 && err == nil {
			continue
		}
		if err == nil {
			var names []string
			names, err = n.clean(ctx, l.program)
			removed = append(removed, names...)
		}
		errs = append(errs, named("clean the tables of "+l.program, err))
	}
	return removed, errors.Join(errs...)
}

// clean changes all tables of a program in one call of it.
func (n Network) clean(ctx context.Context, program string) (removed []string, err error) {
	saved, err := n.Programs.Run(ctx, host.Command{Path: "/usr/sbin/" + program + "-save"})
	if err != nil {
		return nil, err
	}
	if len(saved.Stdout) > 0 && saved.Stdout[0] != '#' && saved.Stdout[0] != '*' {
		return nil, errors.New("they are more than can be read") // the end is all that there is of a long output
	}
	script, chains := withoutOurs(string(saved.Stdout))
	if len(chains) == 0 {
		return nil, nil
	}
	for _, c := range chains {
		removed = append(removed, "chain "+c+" of "+program)
	}
	_, err = n.Programs.Run(ctx, host.Command{Path: "/usr/sbin/" + program + "-restore", Args: []string{"--noflush"}, Stdin: []byte(script)})
	if err != nil {
		return nil, err
	}
	return removed, nil
}

// withoutOurs reads what iptables-save prints and is what iptables-restore --noflush
// needs to take our chains away, and their names. Rules of others stay as they are.
func withoutOurs(saved string) (script string, chains []string) {
	var b strings.Builder
	var own, leading []string
	for line := range strings.Lines(saved) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "*"):
			b.WriteString(line + "\n")
			own, leading = nil, nil
		case strings.HasPrefix(line, ":") && ours(words[0][1:]):
			own = append(own, words[0][1:])
		case len(words) > 1 && words[0] == "-A" && !ours(words[1]) && target(words):
			leading = append(leading, "-D "+strings.TrimPrefix(line, "-A "))
		case line == "COMMIT":
			for _, r := range leading {
				b.WriteString(r + "\n")
			}
			for _, verb := range []string{"-F ", "-X "} {
				for _, c := range own {
					b.WriteString(verb + c + "\n")
				}
			}
			b.WriteString("COMMIT\n")
			chains = append(chains, own...)
		}
	}
	return b.String(), chains
}

// target says whether a rule leads to a chain of ours.
func target(words []string) bool {
	for i, w := range words[:len(words)-1] {
		if (w == "-j" || w == "-g") && ours(words[i+1]) {
			return true
		}
	}
	return false
}
