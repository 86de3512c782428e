package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/userdata"
	"github.com/mdlayher/netlink"

	"github.com/berth-dev/berth/internal/host"
)

// packetFilter is that of the network namespace that the program runs in.
type packetFilter struct {
	files    tree
	programs host.Runner
}

// netlinkBound is how long the kernel has for an answer. It answers at once, or
// never: a kernel that lacks a part of nftables acknowledges less than was sent.
const netlinkBound = 10 * time.Second

// FilterTable implements host.PacketFilter.
func (packetFilter) FilterTable(ctx context.Context, name string) (*host.FilterTable, error) {
	c, err := dialFilter(ctx)
	if err != nil {
		return nil, filterError("read table", name, err)
	}
	t, err := readTable(c, name)
	if err != nil {
		return nil, filterError("read table", name, err)
	}
	return t, nil
}

// ReplaceFilterTable implements host.PacketFilter. Where nothing goes, the kernel
// does not wait until no processor uses any more what went.
func (packetFilter) ReplaceFilterTable(ctx context.Context, t host.FilterTable) error {
	c, err := dialFilter(ctx)
	if err != nil {
		return filterError("replace table", t.Name, err)
	}
	have, err := findTable(c, t.Name)
	if err == nil {
		err = writeTable(c, t, have != nil)
	}
	if have == nil && errors.Is(err, syscall.EEXIST) { // somebody made it meanwhile
		err = writeTable(c, t, true)
	}
	if err != nil {
		return filterError("replace table", t.Name, err)
	}
	return nil
}

// writeTable makes a table, in the place of the one of its name where there is one. To
// delete a table it must be there: it is added first, which changes nothing of one
// that is.
func writeTable(c *nftables.Conn, t host.FilterTable, replace bool) error {
	table := inet(t.Name)
	if replace {
		c.AddTable(table)
		c.DelTable(table)
		c.AddTable(table)
	} else {
		c.CreateTable(table)
	}
	for _, chain := range t.Chains {
		if err := addChain(c, table, chain); err != nil {
			return err
		}
	}
	return c.Flush()
}

// DeleteFilterTable implements host.PacketFilter.
func (packetFilter) DeleteFilterTable(ctx context.Context, name string) error {
	c, err := dialFilter(ctx)
	if err == nil {
		c.DelTable(inet(name))
		err = c.Flush()
	}
	if err != nil {
		return filterError("delete table", name, err)
	}
	return nil
}

// filterError names the table; of several errors of one transaction the first says
// what is wrong.
func filterError(op, name string, err error) error {
	if e, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok {
		err = e.Unwrap()[0]
	}
	return pathError(op, "inet "+name, err)
}

func inet(name string) *nftables.Table {
	return &nftables.Table{Name: name, Family: nftables.TableFamilyINet}
}

// dialFilter prepares a connection; each request opens a socket of its own.
func dialFilter(ctx context.Context) (*nftables.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	end := time.Now().Add(netlinkBound)
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end = d
	}
	return nftables.New(nftables.WithSockOptions(func(c *netlink.Conn) error { return c.SetDeadline(end) }))
}

func addChain(c *nftables.Conn, table *nftables.Table, chain host.FilterChain) error {
	hook := slices.Index(host.Hooks, chain.Hook)
	if hook < 0 {
		return fmt.Errorf("chain %s: no hook %q", chain.Name, chain.Hook)
	}
	accept := nftables.ChainPolicyAccept
	at := c.AddChain(&nftables.Chain{Table: table, Name: chain.Name, Type: nftables.ChainTypeFilter, Policy: &accept,
		Hooknum: nftables.ChainHookRef(nftables.ChainHook(hook)), Priority: nftables.ChainPriorityRef(nftables.ChainPriority(chain.Priority))})
	for _, d := range chain.Drops {
		c.AddRule(&nftables.Rule{Table: table, Chain: at, Exprs: dropExprs(d), UserData: comment(d.Comment)})
	}
	for _, u := range chain.Untracked {
		c.AddRule(&nftables.Rule{Table: table, Chain: at, Exprs: untrackedExprs(u), UserData: comment(u.Comment)})
	}
	return nil
}

// comment is how nft stores a rule's comment.
func comment(text string) []byte {
	if text == "" {
		return nil
	}
	return userdata.AppendString(nil, userdata.TypeComment, text)
}

func readTable(c *nftables.Conn, name string) (*host.FilterTable, error) {
	table, err := findTable(c, name)
	if err != nil || table == nil {
		return nil, err
	}
	out := &host.FilterTable{Name: name}
	if table.Flags != 0 {
		out.Other = append(out.Other, "a flag of the table")
	}
	chains, err := c.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return nil, err
	}
	for _, chain := range chains {
		if chain.Table.Name == name {
			if err := readChain(c, out, chain); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// findTable is a table as the kernel lists it; nil if there is none of that name.
func findTable(c *nftables.Conn, name string) (*nftables.Table, error) {
	tables, err := c.ListTablesOfFamily(nftables.TableFamilyINet)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(tables, func(t *nftables.Table) bool { return t.Name == name })
	if i < 0 {
		return nil, nil
	}
	return tables[i], nil
}

// readChain adds a chain to the description of its table.
func readChain(c *nftables.Conn, out *host.FilterTable, chain *nftables.Chain) error {
	if !plainChain(chain) {
		out.Other = append(out.Other, "chain "+chain.Name)
		return nil
	}
	rules, err := c.GetRules(inet(out.Name), chain)
	if err != nil {
		return err
	}
	h := host.FilterChain{Name: chain.Name, Hook: host.Hooks[*chain.Hooknum], Priority: int(*chain.Priority)}
	for i, r := range rules {
		if !readRule(&h, r) {
			out.Other = append(out.Other, fmt.Sprintf("rule %d of chain %s", i+1, chain.Name))
		}
	}
	out.Chains = append(out.Chains, h)
	return nil
}

// readRule adds a rule to the description of its chain; one that stands elsewhere than
// addChain puts it is another rule.
func readRule(h *host.FilterChain, r *nftables.Rule) bool {
	said, _ := userdata.GetString(r.UserData, userdata.TypeComment)
	if d, ok := readDrop(r.Exprs); ok && len(h.Untracked) == 0 {
		d.Comment = said
		h.Drops = append(h.Drops, d)
		return true
	}
	u, ok := readUntracked(r.Exprs)
	if ok {
		u.Comment = said
		h.Untracked = append(h.Untracked, u)
	}
	return ok
}

// plainChain says that a chain is one that addChain makes.
func plainChain(chain *nftables.Chain) bool {
	return chain.Type == nftables.ChainTypeFilter && chain.Hooknum != nil && int(*chain.Hooknum) < len(host.Hooks) && chain.Priority != nil &&
		chain.Policy != nil && *chain.Policy == nftables.ChainPolicyAccept && chain.Device == ""
}

// FilterNames implements host.PacketFilter.
func (refusing) FilterNames(context.Context) ([]host.FilterName, error) {
	return nil, host.ErrOtherRoot
}

// FilterTable implements host.PacketFilter.
func (refusing) FilterTable(context.Context, string) (*host.FilterTable, error) {
	return nil, host.ErrOtherRoot
}

// ReplaceFilterTable implements host.PacketFilter.
func (refusing) ReplaceFilterTable(_ context.Context, t host.FilterTable) error {
	return &fs.PathError{Op: "replace table", Path: "inet " + t.Name, Err: host.ErrOtherRoot}
}

// DeleteFilterTable implements host.PacketFilter.
func (refusing) DeleteFilterTable(_ context.Context, name string) error {
	return &fs.PathError{Op: "delete table", Path: "inet " + name, Err: host.ErrOtherRoot}
}
