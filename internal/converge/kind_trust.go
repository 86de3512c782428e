package converge

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// trustStore is how a distribution builds its bundle of CA certificates from a
// directory of anchors.
type trustStore struct {
	anchors, suffix, bundle, command string
}

// The layouts of Debian and of the Fedora family; the first whose anchors
// directory or command exists is the machine's.
var trustStores = []trustStore{
	{"/usr/local/share/ca-certificates", ".crt", "/etc/ssl/certs/ca-certificates.crt", "/usr/sbin/update-ca-certificates"},
	{"/etc/pki/ca-trust/source/anchors", ".pem", "/etc/pki/tls/certs/ca-bundle.crt", "/usr/bin/update-ca-trust"},
}

var errNoTrustStore = errors.New("neither update-ca-certificates nor update-ca-trust is installed")

func (p *planning) trustStore() (trustStore, error) {
	for _, s := range trustStores {
		info, err := lstat(p.h, s.command)
		if err != nil {
			return s, err
		}
		if info != nil {
			return s, nil
		}
	}
	return trustStore{}, errNoTrustStore
}

func (p *planning) trust(t *task, a *desired.TrustAnchor) error {
	store, err := p.trustStore()
	if err != nil {
		return err
	}
	q := &put{kind: putFile, path: store.anchors + "/" + a.Name + store.suffix,
		content: desired.Text(a.PEM), attrs: host.Attributes{Mode: 0o644}}
	info, err := lstat(p.h, q.path)
	if err != nil {
		return err
	}
	if err := p.want(t, q, info); err != nil {
		return err
	}
	bundle, _, err := readFile(p.h, store.bundle)
	if err != nil || containsCertificate(bundle, a.PEM) {
		return err
	}
	return p.rebundle(t, store, a)
}

func (p *planning) rebundle(t *task, store trustStore, a *desired.TrustAnchor) error {
	if p.opt.Offline {
		t.postpone(VerbUpdate, "the bundle is rebuilt on first boot")
		return nil
	}
	t.act(VerbUpdate, "not in "+store.bundle, DisruptNone)
	t.remade = append(t.remade, p.target(store.bundle))
	t.live = func(ctx context.Context) error { return p.bundle(ctx, store, a) }
	return nil
}

// bundle rebuilds the bundle, once for all anchors of a plan.
func (p *planning) bundle(ctx context.Context, store trustStore, a *desired.TrustAnchor) error {
	p.bundling.Lock()
	defer p.bundling.Unlock()
	if data, _, err := readFile(p.h, store.bundle); err != nil || containsCertificate(data, a.PEM) {
		return err
	}
	if _, err := p.h.Run(ctx, host.Command{Path: store.command}); err != nil {
		return &TrustError{Name: a.Name, Err: err}
	}
	p.rebuilt = true
	data, _, err := readFile(p.h, store.bundle)
	if err == nil && !containsCertificate(data, a.PEM) {
		err = fmt.Errorf("%s ran, but the certificate is not in %s", store.command, store.bundle)
	}
	if err != nil {
		return &TrustError{Name: a.Name, Err: err}
	}
	return p.keepBundle(p.target(store.bundle), data)
}

// bundlePath is the file that the trust store's command makes, if there is one.
func (p *planning) bundlePath() []string {
	store, err := p.trustStore()
	if err != nil {
		return nil
	}
	return []string{p.target(store.bundle)}
}

// keepBundle makes durable what the command leaves to the kernel's write-back:
// else a power cut after the run takes the certificate away again, and no later
// run is there to notice. The cut may have taken the mode that the command gave, too:
// a bundle is for all to read.
func (p *planning) keepBundle(bundle string, data []byte) error {
	info, err := lstat(p.h, bundle)
	if err != nil || info == nil || !info.IsRegular() {
		return err
	}
	return host.WriteFile(p.h, bundle, data, host.Attributes{Mode: permBits(info.Mode) | 0o444, UID: info.UID, GID: info.GID})
}

// owedBundle is the bundle that a run which was cut off may have made anew.
func (a *applying) owedBundle() []string {
	if a.cut == nil {
		return nil
	}
	return slices.DeleteFunc(a.bundlePath(), func(p string) bool { return !slices.Contains(a.cut.Temps, p) })
}

// resyncBundle keeps it. It comes when all stamps are written: the bundle is
// younger afterwards, and a unit without a stamp is judged by time.
func (a *applying) resyncBundle() error {
	for _, bundle := range a.owedBundle() {
		data, ok, err := readFile(a.h, bundle)
		if err != nil || !ok {
			return err
		}
		if err := a.keepBundle(bundle, data); err != nil {
			return err
		}
	}
	return nil
}

// target is where a link leads, as deep as distributions link their bundles.
func (p *planning) target(name string) string {
	for range 4 {
		to, err := p.h.Readlink(name)
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

// TrustError is a CA certificate that did not get into the machine's bundle.
type TrustError struct {
	Name string
	Err  error
}

// Error names the certificate.
func (e *TrustError) Error() string { return fmt.Sprintf("trust CA certificate %s: %v", e.Name, e.Err) }

// Unwrap returns the cause.
func (e *TrustError) Unwrap() error { return e.Err }

// containsCertificate compares by the certificate's bytes, so that line lengths
// and comments do not matter.
func containsCertificate(bundle []byte, one string) bool {
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
