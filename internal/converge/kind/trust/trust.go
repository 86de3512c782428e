// Package trust is the kind of CA certificates that the machine's own bundle must
// contain.
package trust

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// store is how a distribution builds its bundle of CA certificates from a
// directory of anchors.
type store struct {
	anchors, suffix, bundle, command string
	// anew has the command take away what it made of anchors that are gone.
	anew []string
}

// The layouts of Debian and of the Fedora family; the first whose command exists
// is the machine's.
var stores = []store{
	{"/usr/local/share/ca-certificates", ".crt", "/etc/ssl/certs/ca-certificates.crt", "/usr/sbin/update-ca-certificates", []string{"--fresh"}},
	{"/etc/pki/ca-trust/source/anchors", ".pem", "/etc/pki/tls/certs/ca-bundle.crt", "/usr/bin/update-ca-trust", nil},
}

var errNoStore = errors.New("neither update-ca-certificates nor update-ca-trust is installed")

// Kind is the kind of trust anchors.
type Kind struct{}

var _ kind.Remover = Kind{}

// Name implements kind.Kind.
func (Kind) Name() string { return "trust" }

// Pass implements kind.Kind.
func (Kind) Pass() kind.Pass { return kind.Tree }

// Names implements kind.Kind.
func (Kind) Names(v *kind.View, r desired.Resource) []string {
	s, err := storeOf(v)
	if err != nil {
		return []string{string(r.ID())}
	}
	return []string{s.anchor(v, r.(*desired.TrustAnchor).Name), string(r.ID())}
}

// Inputs implements kind.Input: the bundle is what the system makes of anchors.
func (Kind) Inputs(v *kind.View, r desired.Resource) (files, regenerated []string) {
	s, err := storeOf(v)
	if err != nil {
		return nil, nil
	}
	return []string{s.anchor(v, r.(*desired.TrustAnchor).Name)}, []string{target(v, s.bundle)}
}

// Resume implements kind.Resumer: it keeps the bundle that a run may have made
// which was cut off. It comes when all stamps are written: the bundle is younger
// afterwards, and a unit without a stamp is compared by time.
func (Kind) Resume(v *kind.View, regenerated []string) error {
	s, err := storeOf(v)
	if err != nil || !slices.Contains(regenerated, target(v, s.bundle)) {
		return nil
	}
	data, ok, err := v.ReadFile(target(v, s.bundle))
	if err != nil || !ok {
		return err
	}
	return keep(v, target(v, s.bundle), data)
}

// Unresumed implements kind.Resumer: anchors that the run replaced, where this one, of another
// owner, makes no bundle.
func (Kind) Unresumed(v *kind.View, regenerated []string) (ids []string) {
	s, err := storeOf(v)
	if err != nil {
		return nil
	}
	bundle := target(v, s.bundle)
	if slices.ContainsFunc(v.Tasks(), func(t *kind.Task) bool { return slices.Contains(t.Regenerated, bundle) }) {
		return nil
	}
	for _, p := range regenerated {
		id := string(desired.TrustAnchorID(strings.TrimSuffix(path.Base(p), s.suffix)))
		if e, ours := v.Ledger.Entries[p]; ours && v.Ledger.Ours(id) && p != bundle && !isNoted(v, p, e.Applied.Sum) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Anchors are the certificates that are in a directory of anchors of the machine, those
// whose names begin with prefix.
func Anchors(h host.FS, prefix string) ([]string, error) {
	var found []string
	for _, s := range stores {
		names, err := h.ReadDir(s.anchors)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if !strings.HasPrefix(name, prefix) || !strings.HasSuffix(name, s.suffix) {
				continue
			}
			text, err := h.ReadFile(s.anchors + "/" + name)
			if err != nil {
				return nil, err
			}
			found = append(found, string(text))
		}
	}
	return found, nil
}

func (s store) anchor(v *kind.View, name string) string {
	return v.Real(s.anchors + "/" + name + s.suffix)
}

func storeOf(v *kind.View) (store, error) {
	for _, s := range stores {
		info, err := v.Lstat(s.command)
		if err != nil {
			return s, err
		}
		if info != nil {
			return s, nil
		}
	}
	return store{}, errNoStore
}

// Observe implements kind.Kind.
func (Kind) Observe(_ context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	a := r.(*desired.TrustAnchor)
	s, err := storeOf(v)
	if err != nil {
		return err
	}
	q := &kind.Change{Type: ledger.File, Path: s.anchor(v, a.Name), Content: desired.Text(a.PEM), Attrs: host.Attributes{Mode: 0o644}}
	info, err := v.Lstat(q.Path)
	if err != nil {
		return err
	}
	if err := v.Want(t, q, info); err != nil {
		return err
	}
	if !v.Offline { // so that the first boot knows what it has to make a bundle of
		agree := func(a, b string) bool { return a == "" || a == b }
		if err := v.ClaimLive(t, string(a.ID()), q.Content.Sum(), "", agree); err != nil {
			return err
		}
	}
	bundle, err := bundleAt(v, s)
	if err != nil {
		return err
	}
	unbundled := isUnbundled(v, a, q)
	replaced, cut := unbundled || info != nil && !isAnchor(v, q.Path, info, a), isOwed(v, q)
	reason := ""
	switch {
	case !contains(bundle, a.PEM):
		reason = "not in " + s.bundle
	case unbundled:
		reason = s.bundle + " was not made since the anchor was put in place"
	case replaced:
		reason = s.bundle + " is made of what the anchor was before"
	case cut:
		reason = s.bundle + " may be made of what the anchor was before a run that was cut off"
	default:
		return nil
	}
	if v.Offline {
		t.Postpone(kind.VerbUpdate, "the bundle is rebuilt on first boot")
		return nil
	}
	t.Act(kind.VerbUpdate, reason, kind.DisruptNone)
	t.Regenerated = append(t.Regenerated, target(v, s.bundle))
	if replaced || cut {
		t.Regenerated = append(t.Regenerated, q.Path) // so that the next run knows, should this one be cut off
	}
	t.Live = func(ctx context.Context) error {
		err := bundlerOf(v, s).add(ctx, a, replaced, cut)
		if err == nil && (replaced || cut) {
			v.Contents.Words.Store(note(q.Path, q.Content.Sum()), true)
		}
		return err
	}
	return nil
}

// isUnbundled says whether berth has put an anchor in place and no bundle was made since: by an
// image build, or by a run that was cut off before one of another owner. Only a run that makes
// a bundle claims the anchor's id.
func isUnbundled(v *kind.View, a *desired.TrustAnchor, q *kind.Change) bool {
	file, ours := v.Ledger.Entries[q.Path]
	bundled := slices.Contains(slices.Collect(maps.Values(v.Ledger.Entries[string(a.ID())].Owners)), q.Content.Sum())
	return ours && !file.Adopted && !bundled
}

// isOwed says whether a run that did not come to its end replaced an anchor, and nobody knows
// of the bundle. A process that stays knows what it has made.
func isOwed(v *kind.View, q *kind.Change) bool {
	return v.Ledger.Owed != nil && slices.Contains(v.Ledger.Owed.Regenerated, q.Path) && !isNoted(v, q.Path, q.Content.Sum())
}

func isNoted(v *kind.View, anchor, sum string) bool {
	_, noted := v.Contents.Words.Load(note(anchor, sum))
	return noted
}

func note(anchor, sum string) string { return "bundle of " + anchor + " " + sum }

// isAnchor says whether a file holds an anchor and nothing else.
func isAnchor(v *kind.View, p string, info *host.Info, a *desired.TrustAnchor) bool {
	if !info.IsRegular() || info.Size != int64(len(a.PEM)) {
		return false
	}
	text, _, err := v.ReadFile(p)
	return err == nil && string(text) == a.PEM
}

// Remove implements kind.Remover: the bundle is made without the anchor, also after
// a run that was cut off before it came to that.
func (Kind) Remove(_ context.Context, v *kind.View, t *kind.Task, id string, _ ledger.Entry) error {
	s, err := storeOf(v)
	if err != nil {
		return nil // with the programs of the trust store went what they made
	}
	if v.Offline {
		t.Forget = nil
		t.Postpone(kind.VerbUpdate, "the bundle is rebuilt on first boot")
		return nil
	}
	t.Act(kind.VerbUpdate, "no longer wanted in "+s.bundle, kind.DisruptNone)
	t.Regenerated = append(t.Regenerated, target(v, s.bundle))
	t.Live = func(ctx context.Context) error { return bundlerOf(v, s).rebuild(ctx, strings.TrimPrefix(id, "trust:")) }
	return nil
}

// bundler rebuilds the bundle, once for all anchors of a run.
type bundler struct {
	v     *kind.View
	store store
	mu    sync.Mutex
	// built: it was made in this run; fresh: with its command's way to begin anew.
	built, fresh bool
}

func bundlerOf(v *kind.View, s store) *bundler {
	return v.Shared("trust", func() any { return &bundler{v: v, store: s} }).(*bundler)
}

// bundleAt is the machine's bundle; nothing where there is none, or what can be none.
func bundleAt(v *kind.View, s store) ([]byte, error) {
	data, _, err := v.ReadFile(s.bundle)
	if errors.Is(err, syscall.EFBIG) {
		return nil, nil
	}
	return data, err
}

// add is for an anchor that came, or that took the place of another one: then the links to
// that one by its hash have to go, too. Where that may have been in a run that was cut off, the
// bundle is made in any case.
func (b *bundler) add(ctx context.Context, a *desired.TrustAnchor, replaced, cut bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, err := bundleAt(b.v, b.store)
	if err != nil || contains(data, a.PEM) && (!replaced || b.fresh) && (!cut || b.built) {
		return err
	}
	var args []string
	if replaced {
		args = b.store.anew
	}
	data, err = b.run(ctx, args)
	b.fresh = b.fresh || replaced && err == nil
	if err == nil && !contains(data, a.PEM) {
		err = fmt.Errorf("%s ran, but the certificate is not in %s", b.store.command, b.store.bundle)
	}
	if err != nil {
		return &Error{Name: a.Name, Err: err}
	}
	return keep(b.v, target(b.v, b.store.bundle), data)
}

// rebuild is for an anchor that is gone. Where one came in the same run, Debian's command
// has taken away the links of those that are gone; else it has to begin anew.
func (b *bundler) rebuild(ctx context.Context, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.built {
		return nil
	}
	data, err := b.run(ctx, b.store.anew)
	if err != nil {
		return &Error{Name: name, Err: err}
	}
	return keep(b.v, target(b.v, b.store.bundle), data)
}

func (b *bundler) run(ctx context.Context, args []string) ([]byte, error) {
	if _, err := b.v.Host.Run(ctx, host.Command{Path: b.store.command, Args: args}); err != nil {
		return nil, err
	}
	b.built = true
	data, _, err := b.v.ReadFile(b.store.bundle)
	return data, err
}

// keep makes a bundle durable that the command leaves to the kernel's write-back:
// else a power cut after the run takes the certificate away again, and no later
// run is there to notice. The cut may have taken the mode that the command gave, too:
// a bundle is for all to read.
func keep(v *kind.View, bundle string, data []byte) error {
	info, err := v.Lstat(bundle)
	if err != nil || info == nil || !info.IsRegular() {
		return err
	}
	return host.WriteFile(v.Host, bundle, data, host.Attributes{Mode: ledger.PermBits(info.Mode) | 0o444, UID: info.UID, GID: info.GID})
}

// target is where a link leads, as deep as distributions link their bundles.
func target(v *kind.View, name string) string {
	for range 4 {
		to, err := v.Host.Readlink(name)
		if err != nil {
			break
		}
		if !path.IsAbs(to) {
			to = path.Join(path.Dir(name), to)
		}
		name = path.Clean(to)
	}
	return name
}

// Error is a CA certificate that did not get into the machine's bundle.
type Error struct {
	Name string
	Err  error
}

// Error names the certificate.
func (e *Error) Error() string { return fmt.Sprintf("trust CA certificate %s: %v", e.Name, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// contains compares by the certificate's bytes, so that line lengths and comments
// do not matter.
func contains(bundle []byte, one string) bool {
	want, _ := pem.Decode([]byte(one))
	if want == nil {
		return false
	}
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if bytes.Equal(block.Bytes, want.Bytes) {
			return true
		}
	}
	return false
}
