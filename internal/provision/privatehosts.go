package provision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"time"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/hostsagent"
	"github.com/berth-dev/berth/internal/converge/kind/block"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// lockPatience is how long a run that has the machine is waited for; it writes the
// address itself, and the next look is soon.
const lockPatience = time.Second

// KeepPrivateHost writes the address of an API server that a tag of the virtual machine
// names where the machine's resolvers look first. Without a tag what is there stays.
func KeepPrivateHost(ctx context.Context, h host.Host, name string, ask func(context.Context) netip.Addr) (changed bool, err error) {
	address := ask(ctx)
	if !address.IsValid() {
		return false, nil
	}
	text, _, err := hostsFile(h)
	if err != nil || block.Lines(text, hostsagent.Block) == hostsagent.Lines(address, name) {
		return false, err
	}
	unlock, err := lockMachine(ctx, h, lockPatience, "berth node hosts-agent")
	if is[*host.LockedError](err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock the machine: %w", err)
	}
	changed, err = writePrivateHost(h, address, name)
	return changed, errors.Join(err, unlock())
}

// writePrivateHost writes the address, unless who was waited for has it no longer kept. The
// machine has the address also where it can't be noted.
func writePrivateHost(h host.FS, address netip.Addr, name string) (changed bool, err error) {
	if !there(h, hostsagent.UnitFile) {
		return false, nil
	}
	unnoted := noteAddress(h, address)
	text, attributes, err := hostsFile(h)
	if err == nil {
		err = host.WriteFile(h, hostsagent.File, []byte(block.First(text, hostsagent.Block, hostsagent.Lines(address, name))), attributes)
	}
	return err == nil, errors.Join(err, unnoted)
}

// noteAddress keeps the address with the configuration in force: neither a run that goes back
// to it nor the agent shall go back to another one.
func noteAddress(h host.FS, address netip.Addr) error {
	kept, err := trial.Good(h, desired.OwnerAKS)
	if err != nil || kept == nil { // of none the run that brings it in force asks itself
		return err
	}
	var facts component.Facts
	if err := json.Unmarshal(kept.Facts, &facts); err != nil {
		return fmt.Errorf("read the facts of the configuration in force: %w", err)
	}
	facts.APIServer = address
	return withFacts(h, kept, facts)
}

// lockMachine locks the machine. After a boot its directory is not there yet.
func lockMachine(ctx context.Context, h host.Host, patience time.Duration, who string) (unlock func() error, err error) {
	if _, err := host.MkdirAll(h, paths.RunDir); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return h.Lock(ctx, ledger.LockPath, who)
}

func hostsFile(h host.FS) (text string, a host.Attributes, err error) {
	info, err := h.Lstat(hostsagent.File)
	if errors.Is(err, fs.ErrNotExist) {
		return "", readableFile, nil
	}
	if err != nil {
		return "", a, err
	}
	a = host.Attributes{Mode: ledger.PermBits(info.Mode), UID: info.UID, GID: info.GID}
	if a.Xattrs, err = ledger.KeptXattrs(h, hostsagent.File); err != nil {
		return "", a, err
	}
	b, err := h.ReadFile(hostsagent.File)
	return string(b), a, err
}

// readableFile is a file that everybody may read.
var readableFile = host.Attributes{Mode: 0o644}
