// Package serving is the kind of self-signed serving certificates.
package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Kind is the kind of serving certificates.
type Kind struct{}

// Name implements kind.Kind.
func (Kind) Name() string { return "serving" }

// Pass implements kind.Kind.
func (Kind) Pass() kind.Pass { return kind.Tree }

// Names implements kind.Kind.
func (Kind) Names(v *kind.View, r desired.Resource) []string {
	s := r.(*desired.ServingCertificate)
	return []string{v.Real(s.CertFile), v.Real(s.KeyFile)}
}

// Asked implements kind.Asker.
func (Kind) Asked(r desired.Resource) string {
	return strings.Join(r.(*desired.ServingCertificate).Names, " ")
}

// Observe implements kind.Kind.
func (k Kind) Observe(_ context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	s := r.(*desired.ServingCertificate)
	if v.ServingValid == nil || v.SelfSigned == nil {
		return kind.ErrNoProvider
	}
	cert, err := read(v, s.CertFile)
	if err != nil {
		return err
	}
	key, err := read(v, s.KeyFile)
	if err != nil {
		return err
	}
	ok, reason := v.ServingValid(cert, key, s.Names, v.Host.Now())
	if ok {
		return k.modes(v, t, s, cert, key)
	}
	if v.Offline {
		t.Postpone(kind.VerbIssue, "made on first boot")
		return nil
	}
	taken, err := k.replace(v, t, s, nil, nil)
	t.Act(kind.VerbIssue, reason+taken, kind.DisruptNone)
	t.Stage = func(_ context.Context, t *kind.Task) error { return k.sign(v, t, s) }
	return err
}

// read is a file of the pair; nothing where there is none, or none that could be one.
func read(v *kind.View, name string) ([]byte, error) {
	data, _, err := v.ReadFile(name)
	if errors.Is(err, syscall.EFBIG) {
		return nil, nil
	}
	return data, err
}

// replace enters the pair's files.
func (k Kind) replace(v *kind.View, t *kind.Task, s *desired.ServingCertificate, cert, key []byte) (taken string, err error) {
	for _, q := range k.files(v, s, cert, key) {
		info, err := v.Lstat(q.Path)
		if err == nil {
			err = v.MayChange(q, info)
		}
		if err != nil {
			return taken, err
		}
		t.Changes = append(t.Changes, q)
		taken = cmp.Or(taken, q.TakenOver())
	}
	return taken, nil
}

// modes keeps the attributes of a pair that is itself in order.
func (k Kind) modes(v *kind.View, t *kind.Task, s *desired.ServingCertificate, cert, key []byte) error {
	for _, q := range k.files(v, s, cert, key) {
		info, err := v.Lstat(q.Path)
		if err != nil {
			return err
		}
		if err := v.RepairAttributes(t, q, info); err != nil {
			return err
		}
	}
	return nil
}

func (k Kind) files(v *kind.View, s *desired.ServingCertificate, cert, key []byte) []*kind.Change {
	return []*kind.Change{
		{Type: ledger.File, Path: v.Real(s.KeyFile), Content: desired.SecretBytes(key), Attrs: host.Attributes{Mode: 0o600}, Generated: true, Asked: k.Asked(s)},
		{Type: ledger.File, Path: v.Real(s.CertFile), Content: desired.Bytes(cert), Attrs: host.Attributes{Mode: 0o644}, Generated: true, Asked: k.Asked(s)},
	}
}

func (k Kind) sign(v *kind.View, t *kind.Task, s *desired.ServingCertificate) error {
	cert, key, err := v.SelfSigned(s.Names, v.Host.Now())
	if err != nil {
		return fmt.Errorf("make serving certificate: %w", err)
	}
	t.Changes = slices.DeleteFunc(t.Changes, func(q *kind.Change) bool { return q.Type != ledger.Directory })
	_, err = k.replace(v, t, s, cert, key)
	return err
}
