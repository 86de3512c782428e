// Package podnetwork is the kind of the pod network's configuration that the
// container runtime makes of a template. containerd makes it when kubelet tells it
// the node's pod addresses (CRI UpdateRuntimeConfig), and not where there is one;
// kubelet tells it when the addresses change from what this run of it knows, hence
// once after each start. So one that is made of another template, or that is gone,
// stays so until kubelet starts anew.
package podnetwork

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Kind is the kind of pod networks.
type Kind struct{}

var _ kind.Remover = Kind{}

// Name implements kind.Kind.
func (Kind) Name() string { return "podnetwork" }

// Pass implements kind.Kind: units are observed later, and kubelet's may have to
// start anew.
func (Kind) Pass() kind.Pass { return kind.Tree }

// Names implements kind.Kind. The file is the runtime's.
func (Kind) Names(_ *kind.View, r desired.Resource) []string { return []string{string(r.ID())} }

// Observe implements kind.Kind.
func (Kind) Observe(ctx context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	n := r.(*desired.PodNetwork)
	if v.Offline {
		return nil
	}
	info, err := v.Lstat(v.Real(n.File))
	if err != nil {
		return err
	}
	was := ""
	if info != nil {
		was = "there"
	}
	if err := v.ClaimLive(t, string(n.ID()), n.Template, was, kind.Equal); err != nil {
		return err
	}
	o, err := kind.LookAtNode(ctx, v, n.Kubeconfig, n.Node)
	if err != nil {
		return err
	}
	if info == nil {
		return missing(ctx, v, t, n, o)
	}
	reason, err := stale(ctx, v, n, o, info)
	if err != nil || reason == "" {
		return err
	}
	remove(t, v.Real(n.File), info)
	t.Act(kind.VerbDelete, reason+"; it is made anew when kubelet starts", kind.DisruptNone)
	t.Demand = kind.Demand{Unit: desired.UnitID(n.Unit), Reason: n.File + " is to be made anew"}
	return nil
}

// stale says why a file is not what the runtime would make now; "" if it is. The
// addresses are compared where they are known: a Node that was deleted may get
// others.
func stale(ctx context.Context, v *kind.View, n *desired.PodNetwork, o *kind.OwnNode, info *host.Info) (string, error) {
	if !info.IsRegular() || info.Size > maxRead {
		return "is not made of " + n.Template, nil
	}
	text, err := v.Host.ReadFile(v.Real(n.File))
	if err != nil {
		return "", err
	}
	if !Matches(text, n.Parts) {
		return "is not made of " + n.Template, nil
	}
	switch o.Sight {
	case kind.NodeAbsent:
		_, hadTime, running, err := kind.StartOf(ctx, v.Host, n.Unit)
		if err != nil || running && !hadTime {
			return "", err
		}
		return "its addresses were those of a Node that was deleted", nil
	case kind.NodePresent:
		for _, cidr := range o.Node.PodCIDRs {
			if !bytes.Contains(text, []byte(strconv.Quote(cidr))) {
				return "lacks " + cidr + ", which the cluster gave the node", nil
			}
		}
	}
	return "", nil
}

// remove plans that the file goes. It can be made again: no original is kept.
func remove(t *kind.Task, p string, info *host.Info) {
	t.Changes = append(t.Changes, &kind.Change{Type: ledger.Gone, Path: p, Seen: info, Unclaimed: true, Forget: true})
}

// maxRead bounds a file that is compared, in bytes.
const maxRead = 64 << 10

// Matches says whether a text is made of parts, in order, with something between
// each two.
func Matches(text []byte, parts []string) bool {
	for i, part := range parts {
		at := bytes.Index(text, []byte(part))
		if i == len(parts)-1 && i > 0 {
			at = len(text) - len(part)
		}
		if at < 0 || i == 0 && at != 0 || i > 0 && at == 0 || !bytes.HasPrefix(text[at:], []byte(part)) {
			return false
		}
		text = text[at+len(part):]
	}
	return len(text) == 0
}

// missing plans that kubelet starts anew where that makes the file: the cluster has
// given the node addresses, and this run of kubelet has passed them on already.
func missing(ctx context.Context, v *kind.View, t *kind.Task, n *desired.PodNetwork, o *kind.OwnNode) error {
	if o.Sight != kind.NodePresent || len(o.Node.PodCIDRs) == 0 {
		return nil
	}
	start, hadTime, running, err := kind.StartOf(ctx, v.Host, n.Unit)
	if err != nil || !running {
		return err
	}
	others, err := others(v, path.Dir(n.File))
	if err != nil || others {
		return err
	}
	changed, err := changedSince(v, start, n.Template, path.Dir(n.File))
	if err != nil || !hadTime && !changed {
		return err
	}
	made, err := madeMeanwhile(v, n.File)
	if err == nil && !made {
		t.Demand = kind.Demand{Unit: desired.UnitID(n.Unit), Reason: n.File + " is missing"}
	}
	return err
}

// madeMeanwhile says whether the runtime has made the file since it was looked for,
// or is about to: containerd writes a file whose name is digits alone, syncs it and
// renames it.
func madeMeanwhile(v *kind.View, file string) (bool, error) {
	names, err := v.Host.ReadDir(v.Real(path.Dir(file)))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return name == path.Base(file) || strings.Trim(name, "0123456789") == ""
	}), err
}

// others says whether the directory has a configuration, of whomever.
func others(v *kind.View, dir string) (bool, error) {
	names, err := v.Host.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return slices.Contains([]string{".conf", ".conflist", ".json"}, path.Ext(name)) && !strings.HasPrefix(name, ".")
	}), err
}

// changedSince says whether a path was changed after a time, or is about to be. A change
// in the future is one before the clock was set back: of it that can't be said.
func changedSince(v *kind.View, start time.Time, paths ...string) (bool, error) {
	for _, p := range paths {
		info, err := v.Lstat(v.Real(p))
		if err != nil || info == nil || info.ModTime.After(start) && !info.ModTime.After(v.Host.Now()) {
			return err == nil, err
		}
	}
	return false, nil
}

// Remove implements kind.Remover: what was made of the template goes with it.
func (Kind) Remove(_ context.Context, v *kind.View, t *kind.Task, id string, e ledger.Entry) error {
	p := v.Real(strings.TrimPrefix(id, "podnetwork:"))
	if e.Was == nil || e.Was.Value != "" {
		return nil
	}
	info, err := v.Lstat(p)
	if err != nil || info == nil || !info.IsRegular() {
		return err
	}
	remove(t, p, info)
	t.Act(kind.VerbDelete, "made of "+e.Applied.Value+", which is no longer wanted", kind.DisruptNone)
	return nil
}
