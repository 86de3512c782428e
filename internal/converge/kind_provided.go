package converge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

var errNoProvider = errors.New("this engine was built without a provider for it")

// check never changes anything: its stage verifies, every time.
func (p *planning) check(t *task, c *desired.Check) error {
	if p.opt.Offline {
		t.postpone(VerbCheck, "checked on first boot")
		return nil
	}
	t.stage = func(ctx context.Context, _ *task) error {
		if p.opt.Prober == nil {
			return errNoProvider
		}
		return p.opt.Prober.Probe(ctx, c)
	}
	return nil
}

func (p *planning) credential(t *task, c *desired.ClientCertificate) error {
	if p.opt.Issuer == nil {
		return errNoProvider
	}
	ok, reason, err := p.opt.Issuer.Valid(p.h, c)
	if err != nil {
		return err
	}
	if ok {
		return p.credentialModes(t, c)
	}
	if p.opt.Offline {
		t.postpone(VerbIssue, "requested on first boot")
		return nil
	}
	t.act(VerbIssue, reason, DisruptNone)
	t.staged = c.After
	t.stage = func(ctx context.Context, t *task) error { return p.issue(ctx, t, c) }
	return p.credentialFiles(t, c, Credential{})
}

// issue obtains the certificate and fills its files in.
func (p *planning) issue(ctx context.Context, t *task, c *desired.ClientCertificate) error {
	cred, err := p.opt.Issuer.Issue(ctx, c)
	if err != nil {
		return err
	}
	t.puts = slices.DeleteFunc(t.puts, func(q *put) bool { return q.kind != putDir })
	if c.Announce != nil {
		t.favour = func(ctx context.Context) error { return p.opt.Issuer.Announce(ctx, c, cred) }
	}
	return p.credentialFiles(t, c, cred)
}

// credentialFiles adds the files of a credential. What stands there was made by
// kubelet or by berth: no original is kept.
func (p *planning) credentialFiles(t *task, c *desired.ClientCertificate, cred Credential) error {
	files, err := p.opt.Issuer.Files(c, cred)
	if err != nil {
		return err
	}
	for _, r := range files {
		q, err := generated(r)
		if err != nil {
			return err
		}
		if q.seen, err = lstat(p.h, q.path); err != nil {
			return err
		}
		t.puts = append(t.puts, q)
	}
	return nil
}

// credentialModes keeps the attributes of a credential that is itself in order.
// kubelet may be about to renew it: only mode and owner are touched.
func (p *planning) credentialModes(t *task, c *desired.ClientCertificate) error {
	files, err := p.opt.Issuer.Files(c, Credential{})
	if err != nil {
		return err
	}
	for _, r := range files {
		f, ok := r.(*desired.File)
		if !ok {
			continue
		}
		info, err := lstat(p.h, f.Path)
		if err != nil {
			return err
		}
		q := &put{kind: putAttributes, path: f.Path, attrs: host.Attributes{Mode: f.Mode.Perm(), UID: f.UID, GID: f.GID}, seen: info}
		if info == nil || !info.IsRegular() {
			continue
		}
		if reason := attributeDifference(info, q.attrs); reason != "" {
			t.puts = append(t.puts, q)
			t.act(VerbUpdate, f.Path+": "+reason, DisruptNone)
		}
	}
	return nil
}

func generated(r desired.Resource) (*put, error) {
	switch r := r.(type) {
	case *desired.File:
		return &put{kind: putFile, path: r.Path, content: r.Content, generated: true,
			attrs: host.Attributes{Mode: r.Mode.Perm(), UID: r.UID, GID: r.GID}}, nil
	case *desired.Link:
		return &put{kind: putLink, path: r.Path, target: r.Target, generated: true}, nil
	}
	return nil, fmt.Errorf("a credential can't consist of a %s", r.Kind())
}

func (p *planning) serving(t *task, s *desired.ServingCertificate) error {
	if p.opt.ServingValid == nil || p.opt.SelfSigned == nil {
		return errNoProvider
	}
	cert, _, err := readFile(p.h, s.CertFile)
	if err != nil {
		return err
	}
	key, _, err := readFile(p.h, s.KeyFile)
	if err != nil {
		return err
	}
	ok, reason := p.opt.ServingValid(cert, key, s.Names, p.h.Now())
	if ok {
		return p.servingModes(t, s, cert, key)
	}
	if p.opt.Offline {
		t.postpone(VerbIssue, "made on first boot")
		return nil
	}
	taken := ""
	for _, q := range servingPuts(s, nil, nil) {
		info, err := lstat(p.h, q.path)
		if err == nil {
			err = p.mayPut(q, info)
		}
		if err != nil {
			return err
		}
		t.puts = append(t.puts, q)
		taken = cmp.Or(taken, q.takenOver())
	}
	t.act(VerbIssue, reason+taken, DisruptNone)
	t.stage = func(_ context.Context, t *task) error { return p.selfSign(t, s) }
	return nil
}

// servingModes keeps the attributes of a pair that is itself in order.
func (p *planning) servingModes(t *task, s *desired.ServingCertificate, cert, key []byte) error {
	for _, q := range servingPuts(s, cert, key) {
		info, err := lstat(p.h, q.path)
		if err != nil {
			return err
		}
		if err := p.repairAttributes(t, q, info); err != nil {
			return err
		}
	}
	return nil
}

func servingPuts(s *desired.ServingCertificate, cert, key []byte) []*put {
	return []*put{
		{kind: putFile, path: s.KeyFile, content: desired.SecretBytes(key), attrs: host.Attributes{Mode: 0o600}, generated: true, asked: askedOf(s)},
		{kind: putFile, path: s.CertFile, content: desired.Bytes(cert), attrs: host.Attributes{Mode: 0o644}, generated: true, asked: askedOf(s)},
	}
}

func (p *planning) selfSign(t *task, s *desired.ServingCertificate) error {
	cert, key, err := p.opt.SelfSigned(s.Names, p.h.Now())
	if err != nil {
		return fmt.Errorf("make serving certificate: %w", err)
	}
	t.puts = slices.DeleteFunc(t.puts, func(q *put) bool { return q.kind != putDir })
	for _, q := range servingPuts(s, cert, key) {
		info, err := lstat(p.h, q.path)
		if err == nil {
			err = p.mayPut(q, info)
		}
		if err != nil {
			return err
		}
		t.puts = append(t.puts, q)
	}
	return nil
}
