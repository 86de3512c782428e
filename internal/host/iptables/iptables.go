// Package iptables reads the rules that the kernel keeps outside nf_tables, which the
// legacy iptables alone knows.
package iptables

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"

	"github.com/berth-dev/berth/internal/host"
)

// Family is the tables of one family of addresses.
type Family struct {
	// Program knows them: it and its siblings PROGRAM-save and PROGRAM-restore.
	Program string
	// names is where the kernel says which of its tables are in use.
	names string
}

// Families are those that the legacy iptables has.
var Families = []Family{
	{"iptables-legacy", "/proc/net/ip_tables_names"},
	{"ip6tables-legacy", "/proc/net/ip6_tables_names"},
}

// Used says whether the kernel has tables of a family. The programs are not asked where
// it has none: they would have it load them.
func (f Family) Used(files host.FS) (bool, error) {
	text, err := files.ReadFile(f.names)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the tables of %s: %w", f.Program, err)
	}
	return len(strings.TrimSpace(string(text))) > 0, nil
}

// maxSaved bounds what is read of the tables, in bytes: kube-proxy writes some 300 for each
// endpoint of a Service.
const maxSaved = 64 << 20

// Save is what PROGRAM-save prints; it is an error if that is more than maxSaved.
func (f Family) Save(ctx context.Context, programs host.Runner) (string, error) {
	saved, err := programs.Run(ctx, host.Command{Path: "/usr/sbin/" + f.Program + "-save", Keep: maxSaved})
	if err != nil {
		return "", fmt.Errorf("read the tables of %s: %w", f.Program, err)
	}
	text := string(saved.Stdout)
	if text != "" && text[0] != '#' && text[0] != '*' { // the end is all that there is of a long output
		return "", fmt.Errorf("read the tables of %s: they are more than can be read", f.Program)
	}
	return text, nil
}

// Restore has PROGRAM-restore do what a script says, beside what is there.
func (f Family) Restore(ctx context.Context, programs host.Runner, script string) error {
	_, err := programs.Run(ctx, host.Command{Path: "/usr/sbin/" + f.Program + "-restore", Args: []string{"--noflush"}, Stdin: []byte(script)})
	if err != nil {
		return fmt.Errorf("change the tables of %s: %w", f.Program, err)
	}
	return nil
}

// Names are the tables and chains in what PROGRAM-save prints, in its order.
func (f Family) Names(saved string) iter.Seq[host.FilterName] {
	return func(yield func(host.FilterName) bool) {
		table := ""
		for line := range strings.Lines(saved) {
			n := host.FilterName{Family: f.Program, Table: table}
			line = strings.TrimRight(line, "\n")
			if name, ok := strings.CutPrefix(line, "*"); ok {
				table, n.Table = name, name
			} else if name, ok := strings.CutPrefix(line, ":"); ok {
				n.Chain, _, _ = strings.Cut(name, " ")
			} else {
				continue
			}
			if !yield(n) {
				return
			}
		}
	}
}
