package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/credential"
	"github.com/berth-dev/berth/internal/agent/datadisk"
	"github.com/berth-dev/berth/internal/agent/pause"
	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/agent/selfupdate"
	"github.com/berth-dev/berth/internal/agent/token"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Reset takes the agent from the machine, with all that it put there: what was there
// before is there again. apply brings the machine to a state. It returns what was
// kept, since it is not berth's alone.
func Reset(ctx context.Context, h host.Host, apply func(context.Context, *desired.State) (*converge.Result, error)) (kept []string, err error) {
	if err := h.StopUnit(ctx, config.Unit); err != nil {
		return nil, fmt.Errorf("stop the agent: %w", err)
	}
	if err := selfupdate.Forget(ctx, h); err != nil {
		return nil, err
	}
	documents, err := DocumentsOwner(h)
	if err != nil {
		return nil, err
	}
	if err := removeCredentials(h); err != nil {
		return nil, err
	}
	for _, owner := range []desired.Owner{documents, desired.OwnerBerth} {
		st := &desired.State{Owner: owner}
		if owner == desired.OwnerBerth {
			named, said, err := stillNamed(h)
			if err != nil {
				return kept, err
			}
			st.Add(named...)
			kept = append(kept, said...)
		}
		if err := st.Seal(); err != nil {
			return kept, err
		}
		res, err := apply(ctx, st)
		if err != nil {
			return kept, err
		}
		kept = append(kept, res.Plan.Kept...)
	}
	if err := trial.Forget(h, desired.OwnerBerth); err != nil { // programs that stay are no version to go back to
		return kept, err
	}
	tokens, err := token.TakeAway(h)
	kept = append(kept, tokens...)
	if err != nil {
		return kept, err
	}
	for _, p := range []string{config.Kubeconfig, credential.KubeletBootstrap, reconcile.RecordPath, reconcile.RecordPathAKS, reconcile.RecordPathNode, keptConfig, keptOptions, pause.Path, selfupdate.MemoryPath} {
		if err := remove(h, p); err != nil {
			return kept, err
		}
	}
	// Last: kubelet's first credential lies on it.
	data, err := releaseDisk(ctx, h)
	return append(kept, data...), err
}

// removeCredentials removes what lies in the directory that berth join made for it, while
// that is known. Where init data brought the agent, the token is not berth's.
func removeCredentials(h host.Host) error {
	keeps, err := KeepsFile(h)
	if err != nil || !keeps {
		return err
	}
	return errors.Join(remove(h, config.BootstrapToken), remove(h, config.Kubeconfig))
}

// DocumentsOwner is whose the documents are that the agent has from its Secret.
func DocumentsOwner(h host.FS) (desired.Owner, error) {
	return reconcile.OwnerOf(h, reconcile.RecordPath, desired.OwnerOSC)
}

// LeavesWith is with whose documents the agent leaves the machine: one that keeps a node as a
// file says goes with the document that asked for it.
func LeavesWith(h host.Host) (desired.Owner, error) {
	documents, err := DocumentsOwner(h)
	if err != nil {
		return "", err
	}
	keeps, err := KeepsFile(h)
	if keeps {
		documents = desired.OwnerNode
	}
	return documents, err
}

// KeptByReset are the paths at which nothing is taken away with the agent: what is mounted
// there holds data.
func KeptByReset(h host.FS) ([]string, error) {
	disk, err := datadisk.Mounted(h)
	if err != nil || !disk {
		return nil, err
	}
	return []string{datadisk.Dir}, nil
}

// There says whether the agent of berth is on the machine: its unit is berth's, or it has begun to
// work and was not wholly taken away since. A reset removes its credentials before what it
// remembers.
func There(h host.Host) (bool, error) {
	led, err := (&ledger.Reader{}).Load(h)
	if err != nil || led.Entries[unitFile].Owns(desired.OwnerBerth) {
		return err == nil, err
	}
	for _, p := range []string{reconcile.RecordPath, keptConfig, keptOptions} {
		if info, err := ledger.Lstat(h, p); err != nil || info != nil {
			return err == nil, err
		}
	}
	return false, nil
}

// releaseDisk unmounts the disk of kubelet's data, and says what is left of it.
func releaseDisk(ctx context.Context, h host.Host) ([]string, error) {
	device, err := datadisk.Release(ctx, h)
	if e, ok := errors.AsType[*datadisk.RunningError](err); ok {
		return []string{device + ": " + e.Error()}, nil
	}
	if err != nil || device == "" {
		return nil, err
	}
	return []string{device + " is no longer mounted at " + datadisk.Dir + ", and the data on it are kept"}, nil
}

// remove removes a file, and what a write of it left behind that was cut off.
func remove(h host.FS, p string) error {
	var errs []error
	for _, name := range []string{host.TempName(p), p} {
		if err := h.Remove(name); err == nil {
			errs = append(errs, h.SyncDir(path.Dir(name)))
		} else if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove %s: %w", p, err)
	}
	return nil
}
