package approver

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	certificates "k8s.io/api/certificates/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var rule = Rule{Machines: []string{"pool-a-*", "m1"}, Group: "agents", BootstrapGroup: "system:bootstrappers:a"}

// form is a request as an agent makes it, for a test to spoil.
type form struct {
	x509.CertificateRequest
	key  crypto.Signer
	csr  certificates.CertificateSigningRequest
	text func([]byte) []byte
}

func newForm(t testing.TB, machine string) *form {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	f := &form{key: key, text: func(b []byte) []byte { return b }}
	f.Subject = pkix.Name{CommonName: userPrefix + machine, Organization: []string{"agents"}}
	f.csr.ObjectMeta = meta.ObjectMeta{Name: "csr-" + machine, UID: "uid"}
	f.csr.Spec = certificates.CertificateSigningRequestSpec{
		SignerName: "kubernetes.io/kube-apiserver-client", ExpirationSeconds: new(int32(2592000)),
		Usages:   []certificates.KeyUsage{"digital signature", "key encipherment", "client auth"},
		Username: "system:bootstrap:abcdef", Groups: []string{"system:bootstrappers", "system:bootstrappers:a", "system:authenticated"},
	}
	return f
}

func (f *form) request(t testing.TB) *certificates.CertificateSigningRequest {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &f.CertificateRequest, f.key)
	if err != nil {
		t.Fatal(err)
	}
	f.csr.Spec.Request = f.text(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	return &f.csr
}

// by makes a user the requester.
func by(user string, groups ...string) func(*form) {
	return func(f *form) { f.csr.Spec.Username, f.csr.Spec.Groups = user, groups }
}

func weak(t testing.TB, key crypto.Signer, err error) func(*form) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return func(f *form) { f.key = key }
}

func TestRule(t *testing.T) {
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	small := weak(t, p224, err)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	edwards := weak(t, ed, err)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	rsa2048 := weak(t, rsaKey, err)
	for name, c := range map[string]struct {
		spoil       func(*form)
		disposition Disposition
		says        string
	}{
		"joins":           {func(*form) {}, ApproveNew, ""},
		"renews":          {by(userPrefix+"m1", "agents", "system:authenticated"), Approve, ""},
		"less usages":     {func(f *form) { f.csr.Spec.Usages = []certificates.KeyUsage{"client auth", "digital signature"} }, ApproveNew, ""},
		"shorter":         {func(f *form) { f.csr.Spec.ExpirationSeconds = new(int32(600)) }, ApproveNew, ""},
		"Ed25519":         {edwards, ApproveNew, ""},
		"RSA":             {rsa2048, ApproveNew, ""},
		"other signer":    {func(f *form) { f.csr.Spec.SignerName = "kubernetes.io/kubelet-serving" }, NotOurs, ""},
		"somebody else's": {func(f *form) { f.Subject = pkix.Name{CommonName: "jane", Organization: []string{"developers"}} }, NotOurs, ""},
		"denied": {func(f *form) {
			f.csr.Status.Conditions = []certificates.CertificateSigningRequestCondition{{Type: "Denied"}}
		}, NotOurs, ""},
		"signed":             {func(f *form) { f.csr.Status.Certificate = []byte("x") }, NotOurs, ""},
		"no PEM":             {func(f *form) { f.text = func([]byte) []byte { return []byte("x") } }, NotOurs, ""},
		"two requests":       {func(f *form) { f.text = func(b []byte) []byte { return append(b, b...) } }, NotOurs, ""},
		"other machine":      {func(f *form) { f.Subject.CommonName = userPrefix + "pool-b-1" }, Leave, "machine pool-b-1 is none of those that may join"},
		"no machine":         {func(f *form) { f.Subject.CommonName = userPrefix }, Leave, "its name is"},
		"odd machine":        {func(f *form) { f.Subject.CommonName = userPrefix + "pool-a-*" }, Leave, "its name is"},
		"a person":           {func(f *form) { f.Subject.CommonName = "jane" }, Leave, `its name is "jane"`},
		"a node":             {func(f *form) { f.Subject.CommonName = "system:node:m1" }, Leave, "its name is"},
		"a second group":     {func(f *form) { f.Subject.Organization = append(f.Subject.Organization, "system:masters") }, Leave, "for the groups"},
		"another group":      {func(f *form) { f.Subject.Organization = []string{"system:masters"} }, Leave, "for the groups"},
		"no group":           {func(f *form) { f.Subject.Organization = nil }, Leave, "for the groups"},
		"a unit":             {func(f *form) { f.Subject.OrganizationalUnit = []string{"x"} }, Leave, "more than a name and a group"},
		"two names":          {func(f *form) { f.Subject.ExtraNames = twoNames(f.Subject.CommonName) }, Leave, ""},
		"other names":        {func(f *form) { f.DNSNames = []string{"kubernetes"} }, Leave, "extensions"},
		"small key":          {small, Leave, "too weak"},
		"spoiled signature":  {func(f *form) { f.text = spoiled }, Leave, "not signed with its own key"},
		"a server":           {func(f *form) { f.csr.Spec.Usages = append(f.csr.Spec.Usages, "server auth") }, Leave, "its usages are"},
		"no client":          {func(f *form) { f.csr.Spec.Usages = []certificates.KeyUsage{"digital signature"} }, Leave, "its usages are"},
		"too long":           {func(f *form) { f.csr.Spec.ExpirationSeconds = new(int32(2592001)) }, Leave, "2592000 seconds at most"},
		"for ever":           {func(f *form) { f.csr.Spec.ExpirationSeconds = nil }, Leave, "2592000 seconds at most"},
		"another agent":      {by(userPrefix+"m2", "agents"), Leave, `sent by "gardener.cloud:node-agent:machine:m2"`},
		"its name alone":     {by(userPrefix+"m1", "system:authenticated"), Leave, "sent by"},
		"another pool's":     {by("system:bootstrap:abcdef", "system:bootstrappers", "system:bootstrappers:b"), Leave, "nor a bootstrap token of group system:bootstrappers:a"},
		"no token's name":    {by("jane", "system:bootstrappers:a"), Leave, "sent by"},
		"kubelet":            {by("system:node:m1", "system:nodes"), Leave, "sent by"},
		"nobody":             {by(""), Leave, "sent by"},
		"nobody of no group": {by("", "agents"), Leave, "sent by"},
	} {
		f := newForm(t, "m1")
		c.spoil(f)
		d := rule.Decide(f.request(t))
		if d.Disposition != c.disposition || !strings.Contains(d.Reason, c.says) || (d.Disposition == Leave) != (d.Reason != "") {
			t.Errorf("%s: %+v", name, d)
		}
		if d.Disposition >= Approve && d.Machine != "m1" {
			t.Errorf("%s: machine %q", name, d.Machine)
		}
	}
}

func twoNames(name string) []pkix.AttributeTypeAndValue {
	cn := []int{2, 5, 4, 3}
	return []pkix.AttributeTypeAndValue{{Type: cn, Value: "system:admin"}, {Type: cn, Value: name}}
}

// spoiled changes a bit of the signature, at the end.
func spoiled(text []byte) []byte {
	block, _ := pem.Decode(text)
	block.Bytes[len(block.Bytes)-1] ^= 1
	return pem.EncodeToMemory(block)
}

func TestPatterns(t *testing.T) {
	for machine, want := range map[string]Disposition{"pool-a-1": ApproveNew, "pool-a-": Leave, "pool-a": Leave, "m1": ApproveNew, "m11": Leave} {
		if d := rule.Decide(newForm(t, machine).request(t)); d.Disposition != want {
			t.Errorf("%s: %+v", machine, d)
		}
	}
	for _, bad := range [][]string{nil, {""}, {"["}, {"a", "[a"}} {
		if (Rule{Machines: bad}).Validate() == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if err := (Rule{Machines: []string{"*"}}).Validate(); err != nil {
		t.Error(err)
	}
}

// Whatever a token's holder sends, only an agent's request is approved.
func FuzzRule(f *testing.F) {
	good := newForm(f, "m1").request(f)
	f.Add(good.Spec.Request, good.Spec.Username, "agents", int32(600))
	f.Add(append(slices.Clone(good.Spec.Request), "x"...), "jane", "", int32(-1))
	other := newForm(f, "m1")
	other.DNSNames = []string{"x"}
	f.Add(other.request(f).Spec.Request, userPrefix+"m1", "agents", int32(1<<30))
	f.Fuzz(func(t *testing.T, request []byte, user, group string, seconds int32) {
		csr := newForm(t, "m1").csr
		csr.Spec.Request, csr.Spec.Username, csr.Spec.ExpirationSeconds = request, user, &seconds
		csr.Spec.Groups = append(csr.Spec.Groups, group)
		d := rule.Decide(&csr)
		if d.Disposition < Approve {
			return
		}
		block, _ := pem.Decode(request)
		got, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil || got.CheckSignature() != nil || got.Subject.CommonName != userPrefix+d.Machine || len(got.Extensions) > 0 ||
			!slices.Equal(got.Subject.Organization, []string{"agents"}) || seconds > 2592000 {
			t.Errorf("%+v of %+v", d, got)
		}
		if d.Disposition == Approve && user != got.Subject.CommonName || d.Disposition == ApproveNew && !strings.HasPrefix(user, "system:bootstrap:") {
			t.Errorf("%+v was sent by %q", d, user)
		}
	})
}
