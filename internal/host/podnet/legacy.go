package podnet

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/host/iptables"
)

// removeLegacy takes our chains out of the tables of the legacy iptables.
func (n Network) removeLegacy(ctx context.Context, before Before) (removed []string, err error) {
	var errs []error
	for _, f := range iptables.Families {
		if n.Files == nil {
			break
		}
		used, err := f.Used(n.Files)
		if err == nil && used {
			var names []string
			names, err = n.clean(ctx, f, before)
			removed = append(removed, names...)
		}
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

// clean changes all tables of a family in one call of its program.
func (n Network) clean(ctx context.Context, f iptables.Family, before Before) (removed []string, err error) {
	saved, err := f.Save(ctx, n.Programs)
	if err != nil {
		return nil, err
	}
	script, chains := withoutOurs(saved, func(table, chain string) bool {
		return ours(chain) && !before.stood(f.Program, table, chain)
	})
	if len(chains) == 0 {
		return nil, nil
	}
	for _, c := range chains {
		removed = append(removed, "chain "+c+" of "+f.Program)
	}
	return removed, f.Restore(ctx, n.Programs, script)
}

// withoutOurs reads what iptables-save prints and is what iptables-restore --noflush
// needs to take chains that go away, and their names. Rules of others stay as they are.
func withoutOurs(saved string, goes func(table, chain string) bool) (script string, chains []string) {
	var b strings.Builder
	var table string
	var own, leading []string
	for line := range strings.Lines(saved) {
		line = strings.TrimSpace(line)
		words := wordsOf(line)
		switch {
		case strings.HasPrefix(line, "*"):
			b.WriteString(line + "\n")
			table, own, leading = line[1:], nil, nil
		case strings.HasPrefix(line, ":") && goes(table, words[0][1:]):
			own = append(own, words[0][1:])
		case len(words) > 1 && words[0] == "-A" && !slices.Contains(own, words[1]) && target(words, own):
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

// wordsOf are the words of a rule. What iptables-save puts in quotation marks, as a comment
// with spaces, is one word.
func wordsOf(rule string) (words []string) {
	quoted, escaped, from := false, false, 0
	for i, c := range []byte(rule) {
		if c == '"' && !escaped {
			quoted = !quoted
		}
		escaped = c == '\\' && !escaped
		if c == ' ' && !quoted {
			words, from = append(words, rule[from:i]), i+1
		}
	}
	return append(words, rule[from:])
}

// target says whether a rule leads to one of some chains.
func target(words, chains []string) bool {
	for i, w := range words[:len(words)-1] {
		if (w == "-j" || w == "-g") && slices.Contains(chains, words[i+1]) {
			return true
		}
	}
	return false
}
