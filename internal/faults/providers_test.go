package faults_test

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/identity"
)

// issuer is the real one but for the request: it hands out one certificate per
// node, so that two machines that are treated alike have equal trees.
type issuer struct{ *identity.Issuer }

func newIssuer(h host.Host) issuer { return issuer{identity.New(h)} }

var issued sync.Map // node name → converge.Credential

func (issuer) Issue(_ context.Context, c *desired.ClientCertificate) (converge.Credential, error) {
	if cred, ok := issued.Load(c.NodeName); ok {
		return cred.(converge.Credential), nil
	}
	cred, err := sign(c.NodeName)
	if err != nil {
		return cred, err
	}
	first, _ := issued.LoadOrStore(c.NodeName, cred)
	return first.(converge.Credential), nil
}

var files sync.Map // what a credential puts on the machine, by path and certificate

// Files remembers: the real one marshals a kubeconfig at each of many calls.
func (i issuer) Files(c *desired.ClientCertificate, cred converge.Credential) ([]converge.CredentialFile, error) {
	key := c.Kubeconfig + c.Server + string(cred.Certificate)
	if fs, ok := files.Load(key); ok {
		return fs.([]converge.CredentialFile), nil
	}
	fs, err := i.Issuer.Files(c, cred)
	files.Store(key, fs)
	return fs, err
}

// Announce tells a cluster that is not there.
func (issuer) Announce(context.Context, *desired.ClientCertificate, converge.Credential) (bool, error) {
	return false, nil
}

// sign makes a client certificate as a cluster's signer would.
func sign(node string) (converge.Credential, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return converge.Credential{}, err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(7), NotBefore: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC),
		Subject: pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:" + node},
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return converge.Credential{}, err
	}
	raw, err := x509.MarshalECPrivateKey(key)
	return converge.Credential{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}),
	}, err
}

type pair struct{ cert, key []byte }

var served sync.Map // names → pair

// selfSigned makes one pair per set of names.
func selfSigned(names []string, now time.Time) (cert, key []byte, err error) {
	all := strings.Join(names, " ")
	if p, ok := served.Load(all); ok {
		return p.(pair).cert, p.(pair).key, nil
	}
	cert, key, err = identity.SelfSigned(names, now)
	p, _ := served.LoadOrStore(all, pair{cert, key})
	return p.(pair).cert, p.(pair).key, err
}

// prober finds the API server, or fails as it is told.
type prober struct{ err error }

var errUnreachable = errors.New("no route to host")

func (p prober) Probe(context.Context, *desired.Check) error { return p.err }

// fetcher makes files out of nothing, with the same effects as a download.
type fetcher struct{}

func (fetcher) Stage(_ context.Context, h host.Host, a *desired.Artifact) (converge.Staged, error) {
	var done []string
	if file, ok := strings.CutPrefix(a.Addresses()[0], "file://"); ok {
		if _, err := h.Lstat(file); err != nil {
			return converge.Staged{}, err
		}
	}
	for _, f := range a.Files {
		content := []byte(program(f.Path, cmp.Or(a.Version, a.Image, "1.0.0")))
		err := host.PrepareFunc(h, f.Path, host.Attributes{Mode: f.Mode.Perm()}, func(to host.File) error {
			_, first := to.Write(content[:8])
			_, second := to.Write(content[8:])
			return errors.Join(first, second)
		})
		if err != nil {
			return converge.Staged{}, errors.Join(err, takeBack(h, done))
		}
		done = append(done, f.Path)
	}
	return converge.Staged{URL: a.Addresses()[0], Unverified: true}, nil
}

// takeBack removes what was staged: on an error nothing is left.
func takeBack(h host.Host, paths []string) error {
	var errs []error
	for _, p := range paths {
		if err := h.Remove(host.TempName(p)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Version reads the line that stands for a program.
func (fetcher) Version(_ context.Context, h host.Host, p string) (string, error) {
	data, err := h.ReadFile(p)
	return versionOf(string(data)), err
}

// images are a container runtime's: a file holds the last one. The runtime's
// database is durable before it shows what it holds, so an import is one effect.
type images struct{ h host.Host }

const (
	imageFile = "/mnt/image"
	importer  = "/usr/bin/ctr"
)

// runtime is the program that imports.
func runtime(h *memory.Host) {
	h.Program(importer, func(c host.Command) host.Output {
		h.Put(imageFile, c.Args[0], 0o600)
		return host.Output{}
	})
}

// Lacks implements converge.Images.
func (r images) Lacks(_ context.Context, i *desired.Image) (string, error) {
	have, err := r.h.ReadFile(imageFile)
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(have) != i.Reference {
		return "absent", nil
	}
	return "", err
}

// Import implements converge.Images.
func (r images) Import(_ context.Context, i *desired.Image) (converge.Staged, error) {
	_, err := r.h.Run(tctx, host.Command{Path: importer, Args: []string{i.Reference}})
	return converge.Staged{URL: i.Source, Unverified: true}, err
}
