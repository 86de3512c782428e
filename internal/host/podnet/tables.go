package podnet

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"

	"github.com/berth-dev/berth/internal/host/kernelmodule"
)

const (
	// bound is how long the kernel has for an answer.
	bound = 10 * time.Second
	// buffer is how many bytes a transaction may have, and its answers: the default, 0.2 MB,
	// is too little for the chains that kube-proxy makes for some hundred services.
	buffer = 64 << 20
)

// builtin are the chains that iptables makes with a table.
var builtin = []string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}

var families = []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyIPv6, nftables.TableFamilyINet}

var familyNames = map[nftables.TableFamily]string{
	nftables.TableFamilyIPv4: "ip", nftables.TableFamilyIPv6: "ip6", nftables.TableFamilyINet: "inet",
}

// removeTables takes whole tables of ours away, and out of the tables that iptables
// keeps in nf_tables our chains with the rules that lead to them. All go in one
// transaction: for each that deletes something the kernel waits about 10 ms. Where it
// refuses that, each table has one of its own.
func removeTables(ctx context.Context, before Before) (removed []string, err error) {
	all, err := allTables(ctx)
	if err != nil {
		return nil, err
	}
	if removed, err = removeFrom(ctx, before, all...); err == nil {
		return removed, nil
	}
	removed = nil
	var errs []error
	for _, t := range all {
		names, err := removeFrom(ctx, before, t)
		removed, errs = append(removed, names...), append(errs, named("clean table "+nameOf(t), err))
	}
	return removed, errors.Join(errs...)
}

func allTables(ctx context.Context) (all []*nftables.Table, err error) {
	c, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	for _, family := range families {
		of, err := tablesOf(c, family)
		if err != nil {
			return nil, err
		}
		all = append(all, of...)
	}
	return all, nil
}

// tablesOf are the tables of a family. A kernel without nf_tables has none.
func tablesOf(c *nftables.Conn, family nftables.TableFamily) ([]*nftables.Table, error) {
	all, err := c.ListTablesOfFamily(family)
	if kernelmodule.Missing(err) {
		return nil, nil
	}
	return all, named("list tables", err)
}

func dial(ctx context.Context) (*nftables.Conn, error) {
	end := time.Now().Add(bound)
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end = d
	}
	c, err := nftables.New(nftables.WithSockOptions(func(c *netlink.Conn) error {
		return errors.Join(c.SetDeadline(end), c.SetWriteBuffer(buffer), c.SetReadBuffer(buffer))
	}))
	return c, named("open the packet filter", err)
}

func nameOf(t *nftables.Table) string { return familyNames[t.Family] + " " + t.Name }

// removeFrom takes out of tables what came since before, in one transaction.
func removeFrom(ctx context.Context, before Before, from ...*nftables.Table) (removed []string, err error) {
	c, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range from {
		names, err := clean(c, t, before)
		if err != nil {
			return nil, err
		}
		removed = append(removed, names...)
	}
	if err := c.Flush(); err != nil {
		return nil, err
	}
	return removed, nil
}

// clean deletes, with the next Flush, what of a table came since before. A table of ours
// that was there stays whole.
func clean(c *nftables.Conn, t *nftables.Table, before Before) (removed []string, err error) {
	stood := before.stood(familyNames[t.Family], t.Name, "")
	if slices.Contains(tables, t.Name) {
		if stood {
			return nil, nil
		}
		c.DelTable(t)
		return []string{"table " + nameOf(t)}, nil
	}
	own, others, err := chainsOf(c, t, before)
	if err != nil {
		return nil, err
	}
	empty, idle, err := unlead(c, t, own, others)
	if err != nil {
		return nil, err
	}
	idle = slices.DeleteFunc(idle, func(chain *nftables.Chain) bool { return stoodChain(before, chain) })
	if len(own)+len(idle) == 0 {
		return nil, nil
	}
	if empty && !stood && hasOnlyChains(c, t) { // iptables would make it again
		c.DelTable(t)
		return []string{"table " + nameOf(t)}, nil
	}
	for _, chain := range own {
		c.FlushChain(chain)
	}
	for _, chain := range slices.Concat(own, idle) {
		c.DelChain(chain)
		removed = append(removed, "chain "+chain.Name+" of table "+nameOf(t))
	}
	return removed, nil
}

func stoodChain(before Before, chain *nftables.Chain) bool {
	return before.stood(familyNames[chain.Table.Family], chain.Table.Name, chain.Name)
}

// hasOnlyChains says whether a table has no sets, named objects or flowtables. Where it
// can't be told, somebody may have some.
func hasOnlyChains(c *nftables.Conn, t *nftables.Table) bool {
	if sets, err := c.GetSets(t); err != nil || len(sets) > 0 {
		return false
	}
	if objects, err := c.GetNamedObjects(t); err != nil || len(objects) > 0 {
		return false
	}
	flowtables, err := c.ListFlowtables(t)
	return err == nil && len(flowtables) == 0
}

// chainsOf are those of a table: ours, and others with those of ours that were there
// before.
func chainsOf(c *nftables.Conn, t *nftables.Table, before Before) (own, others []*nftables.Chain, err error) {
	all, err := c.ListChainsOfTableFamily(t.Family)
	if err != nil {
		return nil, nil, err
	}
	for _, chain := range all {
		switch {
		case chain.Table.Name != t.Name:
		case ours(chain.Name) && !stoodChain(before, chain):
			own = append(own, chain)
		default:
			others = append(others, chain)
		}
	}
	return own, others, nil
}

// unlead deletes, with the next Flush, the rules of other chains that lead to ours. It
// says whether the table does nothing without them, and which chains of iptables do
// nothing any more: iptables would make them again. CNI plugins leave such a chain
// behind, without a rule that would tell whose it was.
func unlead(c *nftables.Conn, t *nftables.Table, own, others []*nftables.Chain) (empty bool, idle []*nftables.Chain, err error) {
	empty = true
	for _, chain := range others {
		rules, err := c.GetRules(t, chain)
		if err != nil {
			return false, nil, err
		}
		gone := 0
		for _, r := range rules {
			if !leads(r, own) {
				continue
			}
			if err := c.DelRule(r); err != nil {
				return false, nil, err
			}
			gone++
		}
		nothing := gone == len(rules) && slices.Contains(builtin, chain.Name) && (chain.Policy == nil || *chain.Policy == nftables.ChainPolicyAccept)
		empty = empty && nothing
		if nothing && (gone > 0 || asIptables(t, chain)) {
			idle = append(idle, chain)
		}
	}
	return empty, idle, nil
}

// leads says whether a rule jumps or goes to one of some chains.
func leads(r *nftables.Rule, to []*nftables.Chain) bool {
	return slices.ContainsFunc(r.Exprs, func(e expr.Any) bool {
		v, ok := e.(*expr.Verdict)
		return ok && v.Chain != "" && slices.ContainsFunc(to, func(chain *nftables.Chain) bool { return chain.Name == v.Chain })
	})
}

// asIptables says whether iptables would make this chain of its at this hook and priority.
func asIptables(t *nftables.Table, chain *nftables.Chain) bool {
	at, ok := priorities[t.Name]
	if t.Name == "nat" && (chain.Name == "INPUT" || chain.Name == "POSTROUTING") {
		at = nftables.ChainPriorityNATSource
	}
	return ok && t.Family != nftables.TableFamilyINet && chain.Priority != nil && *chain.Priority == *at
}

// priorities are where iptables has the chains of the tables that CNI plugins use.
var priorities = map[string]*nftables.ChainPriority{
	"nat": nftables.ChainPriorityNATDest, "filter": nftables.ChainPriorityFilter, "mangle": nftables.ChainPriorityMangle,
}
