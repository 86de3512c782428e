package survey

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/google/nftables"

	"github.com/berth-dev/berth/internal/host/kernelmodule"
)

// ErrLegacy is for a machine whose legacy iptables has a filter of its own, which only
// its own program reads.
var ErrLegacy = errors.New("the legacy iptables has a table filter")

// Dropping names the chains that see what comes to the machine and drop what none of
// their rules accepts. Where nobody has loaded the packet filter there are none, and
// it is not loaded to be asked. A permission that lacks matches fs.ErrPermission.
func (Machine) Dropping() ([]string, error) {
	var out []string
	there, err := kernelmodule.Loaded("/", "nf_tables")
	if there {
		c, err := nftables.New()
		if err != nil {
			return nil, fmt.Errorf("ask the packet filter: %w", err)
		}
		chains, err := c.ListChains()
		if err != nil {
			return nil, fmt.Errorf("list chains: %w", err)
		}
		for _, ch := range chains {
			if drops(ch) {
				out = append(out, ch.Table.Name+" "+ch.Name)
			}
		}
	}
	if old := legacy(); old != nil {
		return out, old
	}
	return out, err
}

func drops(c *nftables.Chain) bool {
	return c.Type == nftables.ChainTypeFilter && c.Hooknum != nil && *c.Hooknum == *nftables.ChainHookInput &&
		c.Policy != nil && *c.Policy == nftables.ChainPolicyDrop
}

// legacy says whether the legacy iptables filters.
func legacy() error {
	for _, name := range []string{"ip_tables_names", "ip6_tables_names"} {
		text, err := os.ReadFile("/proc/net/" + name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was never used
		}
		if err != nil {
			return err
		}
		for table := range strings.FieldsSeq(string(text)) {
			if table == "filter" {
				return ErrLegacy
			}
		}
	}
	return nil
}
