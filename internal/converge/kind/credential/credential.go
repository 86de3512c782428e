// Package credential is the kind of kubelet's client certificate and kubeconfig.
package credential

import (
	"context"
	"slices"
	"sync"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Kind is the kind of client certificates.
type Kind struct{}

var (
	_ kind.Remover = Kind{}
	_ kind.Keeper  = Kind{}
)

// Name implements kind.Kind.
func (Kind) Name() string { return "credential" }

// Pass implements kind.Kind: what a transient file waits for is known before files
// are looked at.
func (Kind) Pass() kind.Pass { return kind.Credentials }

// Names implements kind.Kind.
func (Kind) Names(v *kind.View, r desired.Resource) []string {
	c := r.(*desired.ClientCertificate)
	out := []string{v.Real(c.CertDir), string(c.ID())}
	for _, f := range files(v, c) {
		out = append(out, f.Path)
	}
	return out
}

// Inputs implements kind.Input. The link to the credential in force is not among
// them: its user moves it when it renews.
func (Kind) Inputs(v *kind.View, r desired.Resource) (out, regenerated []string) {
	for _, q := range files(v, r.(*desired.ClientCertificate)) {
		if q.Type == ledger.File {
			out = append(out, q.Path)
		}
	}
	return out, nil
}

// files are the changes that a credential consists of, without content. Several ask for them
// in one run, and only read.
func files(v *kind.View, c *desired.ClientCertificate) []*kind.Change {
	return v.Shared(string(c.ID()), func() any {
		return sync.OnceValue(func() []*kind.Change {
			if v.Issuer == nil {
				return nil
			}
			out, err := issued(v, c, kind.Credential{})
			if err != nil {
				return nil
			}
			return out
		})
	}).(func() []*kind.Change)()
}

// Observe implements kind.Kind.
func (k Kind) Observe(_ context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	c := r.(*desired.ClientCertificate)
	if v.Issuer == nil {
		return kind.ErrNoProvider
	}
	ok, reason, err := v.Issuer.Valid(v.Host, c)
	if err != nil {
		return err
	}
	if cred, there := kept(v, c); there && (!ok || !inForce(v, c, cred)) {
		return comeBack(v, t, c, cred)
	}
	if !ok && v.Offline {
		t.Postpone(kind.VerbIssue, "requested on first boot")
		return nil
	}
	if err := v.ClaimLive(t, string(c.ID()), c.Holder(), "", kind.Equal); err != nil {
		return err
	}
	if ok {
		return modes(v, t, c)
	}
	t.Act(kind.VerbIssue, reason, kind.DisruptNone)
	t.StagedAfter, t.Waits, t.Rejoins = c.After, true, rejoins(v, c)
	t.Stage = func(ctx context.Context, t *kind.Task) error { return issue(ctx, v, t, c) }
	if !isHeld(v, c) { // a node is kept all the same
		if err := v.Issuer.Lacks(c); err != nil {
			t.Obstruct(err)
		}
	}
	return enter(v, t, c, kind.Credential{})
}

// rejoins says whether the machine has had this credential from a run that came to
// its end. A copy of its disk has another name, and has not.
func rejoins(v *kind.View, c *desired.ClientCertificate) bool {
	if v.Returning {
		return true
	}
	had, ok := v.Ledger.Entries[string(c.ID())].Owners[v.State.Owner]
	return ok && had == c.Holder() && v.Ledger.Owed == nil
}

// isHeld says whether a run has begun to make the machine a node by this document.
func isHeld(v *kind.View, c *desired.ClientCertificate) bool {
	_, ok := v.Ledger.Entries[string(c.ID())].Owners[v.State.Owner]
	return v.Returning || ok
}

// Remove implements kind.Remover: the files are names of the tree.
func (Kind) Remove(context.Context, *kind.View, *kind.Task, string, ledger.Entry) error { return nil }

// issue obtains the certificate and fills its files in.
func issue(ctx context.Context, v *kind.View, t *kind.Task, c *desired.ClientCertificate) error {
	cred, err := v.Issuer.Issue(ctx, c)
	if err != nil {
		return err
	}
	t.Changes = slices.DeleteFunc(t.Changes, func(q *kind.Change) bool { return q.Type != ledger.Directory })
	if c.Announce != nil {
		t.BestEffort = &kind.BestEffort{ID: kind.AnnounceID, Verb: kind.VerbCreate, Missed: "the Node was not created ahead of kubelet",
			Do: func(ctx context.Context) error { return announce(ctx, v, c, cred) }}
	}
	return enter(v, t, c, cred)
}

func announce(ctx context.Context, v *kind.View, c *desired.ClientCertificate, cred kind.Credential) error {
	created, err := v.Issuer.Announce(ctx, c, cred)
	if created {
		kind.NodeOf(v, c.Kubeconfig, c.NodeName).IsNew = true
	}
	return err
}

// enter adds the files of a credential. What stands there was made by kubelet or
// by berth: no original is kept.
func enter(v *kind.View, t *kind.Task, c *desired.ClientCertificate, cred kind.Credential) error {
	changes, err := issued(v, c, cred)
	if err != nil {
		return err
	}
	for _, q := range changes {
		if q.Seen, err = v.Lstat(q.Path); err != nil {
			return err
		}
		t.Changes = append(t.Changes, q)
	}
	return nil
}

// issued are the files of a credential as changes.
func issued(v *kind.View, c *desired.ClientCertificate, cred kind.Credential) ([]*kind.Change, error) {
	fs, err := v.Issuer.Files(c, cred)
	if err != nil {
		return nil, err
	}
	out := make([]*kind.Change, len(fs))
	for i, f := range fs {
		out[i] = &kind.Change{Type: ledger.Link, Path: v.Real(f.Path), Target: f.Target, Generated: true}
		if f.Target == "" {
			out[i].Type, out[i].Content, out[i].Attrs = ledger.File, f.Content, host.Attributes{Mode: 0o600}
		}
	}
	return out, nil
}

// modes keeps the attributes of a credential that is itself in order. kubelet may
// be about to renew it: only mode and owner are touched.
func modes(v *kind.View, t *kind.Task, c *desired.ClientCertificate) error {
	for _, f := range files(v, c) {
		info, err := v.Lstat(f.Path)
		if err != nil {
			return err
		}
		if f.Type != ledger.File || info == nil || !info.IsRegular() {
			continue
		}
		q := &kind.Change{Type: ledger.Attributes, Path: f.Path, Attrs: f.Attrs, Seen: info, Unclaimed: true}
		if reason := ledger.AttributeDifference(info, q.Attrs.Mode, q.Attrs.UID, q.Attrs.GID); reason != "" {
			t.Changes = append(t.Changes, q)
			t.Act(kind.VerbUpdate, f.Path+": "+reason, kind.DisruptNone)
		}
	}
	return nil
}
