package approver

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	certificates "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	signer     = certificates.KubeAPIServerClientSignerName
	userPrefix = "gardener.cloud:node-agent:machine:"
	tokenUser  = "system:bootstrap:"
)

// longest is how long a certificate may be valid: what agents ask for.
const longest = 720 * time.Hour

// Rule says whose requests are approved.
type Rule struct {
	// Machines are patterns of path.Match; a machine is one that fits one of them.
	Machines []string
	// Group is what the certificates must be for.
	Group string
	// BootstrapGroup is that of the bootstrap tokens.
	BootstrapGroup string
}

// Validate refuses patterns that fit nothing.
func (r Rule) Validate() error {
	if len(r.Machines) == 0 {
		return errors.New("no machines are named")
	}
	for _, p := range r.Machines {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return fmt.Errorf("%q is no pattern of machines' names", p)
		}
	}
	return nil
}

// Disposition is what a rule makes of a request.
type Disposition int

// The dispositions.
const (
	// NotOurs: another request, or one that somebody has decided.
	NotOurs Disposition = iota
	// Leave: an agent's request that is not as it should be.
	Leave
	// Approve without further questions: an agent that renews its own certificate.
	Approve
	// ApproveNew while the machine has no Node: a machine that joins.
	ApproveNew
)

// Decision is a disposition. Reason says why a request is left.
type Decision struct {
	Disposition Disposition
	Machine     string
	Reason      string
}

// Decide decides about a request. Who sent it, spec.username and spec.groups, the
// API server has written; all the rest the requester.
func (r Rule) Decide(csr *certificates.CertificateSigningRequest) Decision {
	if csr.Spec.SignerName != signer || len(csr.Status.Conditions) > 0 || len(csr.Status.Certificate) > 0 {
		return Decision{}
	}
	request, err := parse(csr.Spec.Request)
	if err != nil {
		return Decision{} // nothing says that it is an agent's; the API server lets none through
	}
	machine, ours := strings.CutPrefix(request.Subject.CommonName, userPrefix)
	if !ours && !slices.Contains(request.Subject.Organization, r.Group) {
		return Decision{}
	}
	disposition, err := r.requester(&csr.Spec, request.Subject.CommonName)
	if err = first(r.subject(request, machine, ours), content(request), terms(&csr.Spec), err); err != nil {
		return Decision{Leave, machine, err.Error()}
	}
	return Decision{Disposition: disposition, Machine: machine}
}

// first is the first error of all.
func first(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

func parse(text []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, errors.New("not one request in PEM form")
	}
	return x509.ParseCertificateRequest(block.Bytes)
}

// subject is a machine that is known, in the agents' group alone.
func (r Rule) subject(request *x509.CertificateRequest, machine string, named bool) error {
	switch {
	case !named || len(validation.IsDNS1123Subdomain(machine)) > 0:
		return fmt.Errorf("its name is %q, must be %s and a machine's name", request.Subject.CommonName, userPrefix)
	case !slices.Equal(request.Subject.Organization, []string{r.Group}):
		return fmt.Errorf("it is for the groups %q, must be for %s alone", request.Subject.Organization, r.Group)
	case len(request.Subject.Names) != 2:
		return errors.New("its subject has more than a name and a group")
	case !slices.ContainsFunc(r.Machines, func(p string) bool { fits, _ := path.Match(p, machine); return fits }):
		return fmt.Errorf("machine %s is none of those that may join", machine)
	}
	return nil
}

// content is a key that is good enough and the requester's, and nothing else.
func content(request *x509.CertificateRequest) error {
	if err := request.CheckSignature(); err != nil {
		return fmt.Errorf("it is not signed with its own key: %w", err)
	}
	if len(request.Extensions) > 0 {
		return errors.New("it asks for extensions, such as other names")
	}
	switch key := request.PublicKey.(type) {
	case *ecdsa.PublicKey:
		if key.Curve.Params().BitSize >= 256 {
			return nil
		}
	case ed25519.PublicKey:
		return nil
	case *rsa.PublicKey:
		if key.N.BitLen() >= 2048 {
			return nil
		}
	}
	return fmt.Errorf("its key is too weak or of an unknown kind (%s)", request.PublicKeyAlgorithm)
}

// terms are what the certificate may be used for, and for how long.
func terms(spec *certificates.CertificateSigningRequestSpec) error {
	usages := slices.Sorted(slices.Values(spec.Usages))
	client := []certificates.KeyUsage{certificates.UsageClientAuth, certificates.UsageDigitalSignature}
	if !slices.Equal(usages, client) && !slices.Equal(usages, append(client, certificates.UsageKeyEncipherment)) {
		return fmt.Errorf("its usages are %q, must be %q, with or without %q", spec.Usages, client, certificates.UsageKeyEncipherment)
	}
	if s := spec.ExpirationSeconds; s == nil || time.Duration(*s)*time.Second > longest {
		return fmt.Errorf("it must be for %d seconds at most", int(longest.Seconds()))
	}
	return nil
}

// requester is the agent itself, or a bootstrap token.
func (r Rule) requester(spec *certificates.CertificateSigningRequestSpec, name string) (Disposition, error) {
	switch {
	case spec.Username == name && slices.Contains(spec.Groups, r.Group):
		return Approve, nil
	case strings.HasPrefix(spec.Username, tokenUser) && slices.Contains(spec.Groups, r.BootstrapGroup):
		return ApproveNew, nil
	}
	return Leave, fmt.Errorf("it was sent by %q, who is neither that agent nor a bootstrap token of group %s", spec.Username, r.BootstrapGroup)
}
