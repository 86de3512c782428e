package doctor

import (
	"context"
	"crypto/x509"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/provision"
)

func checkDocument(_ context.Context, v *visit) *finding {
	st, err := v.state()
	switch {
	case errors.Is(err, fs.ErrPermission):
		return unknownf(asRoot, "%v", err)
	case errors.Is(err, errUnregistered):
		return unknownf("name cluster.server and cluster.caFile to have the cluster looked at before", "%v", err).at("cluster.resourceId")
	case err != nil:
		return failf(helps(err), "%v", err).at(provision.Explain(err).Field)
	}
	return okf("%d resources of this machine", len(st.Resources))
}

// slow is an answer that many requests of a node will feel.
const slow = time.Second

func checkServer(_ context.Context, v *visit) *finding {
	x, err := v.exchange()
	e, _ := errors.AsType[*apiserver.Error](err)
	switch {
	case e != nil:
		return failf(e.Hint(), "%v", err).at(v.serverField())
	case err != nil:
		return v.noServer(err)
	case x.Status >= 500:
		return failf("look at the API server itself, and at what stands before it", "%s answers with HTTP status %d", x.Host, x.Status)
	case x.Took > slow:
		return warnf("see how the way to the API server is: each request of the node takes as long", "%s answers after %s", x.Host, x.Took.Round(time.Millisecond))
	}
	return okf("%s answers after %s", x.Host, x.Took.Round(time.Millisecond))
}

func (v *visit) serverField() string {
	if v.Config != nil {
		return "cluster.server"
	}
	return ""
}

// noServer is why nobody knows which API server is meant.
func (v *visit) noServer(err error) *finding {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return unread("kubelet's kubeconfig", err)
	case v.when == Node:
		return failf("berth apply, or berth provision", "kubelet has no kubeconfig: %v", err)
	}
	return unknownf("", "%v", err)
}

func checkTrust(_ context.Context, v *visit) *finding {
	x, err := v.exchange()
	if len(x.Chain) == 0 {
		return unknownf("", "the API server has shown no certificate: %v", err)
	}
	ca, err := v.ca()
	if err != nil {
		return unknownf("", "the cluster's CA is not known: %v", err)
	}
	err = x.Trusted(ca, v.Host.Now())
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, name := errors.AsType[x509.HostnameError](err)
	invalid, over := errors.AsType[x509.CertificateInvalidError](err)
	own := x.Chain[0]
	switch {
	case err == nil:
		return okf("%s shows a certificate of the cluster's CA, good until %s", x.Host, own.NotAfter.UTC().Format(time.DateOnly))
	case authority:
		return failf("take the CA from the cluster itself: kubectl config view --raw, or /etc/kubernetes/pki/ca.crt there", "the certificate of %s is by %s, and not by the CA that is known", x.Host, own.Issuer).at(v.caField())
	case name:
		return failf("use one of these names, or have it put into the API server's certificate", "the certificate of %s is for %s", x.Host, strings.Join(names(own), ", ")).at(v.serverField())
	case over && invalid.Reason == x509.Expired:
		return failf("set this machine's clock, or have the API server's certificate renewed", "the certificate of %s is good from %s to %s, and here it is %s", x.Host,
			own.NotBefore.UTC().Format(time.RFC3339), own.NotAfter.UTC().Format(time.RFC3339), v.Host.Now().UTC().Format(time.RFC3339))
	}
	return failf("take the CA from the cluster itself", "the certificate of %s: %v", x.Host, err).at(v.caField())
}

func (v *visit) caField() string {
	switch {
	case v.Config == nil:
		return ""
	case v.Config.Cluster.CAFile != "":
		return "cluster.caFile"
	case v.Config.Cluster.CA != "":
		return "cluster.ca"
	}
	return "cluster.caCertHash"
}

func names(c *x509.Certificate) []string {
	out := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		out = append(out, ip.String())
	}
	return out
}

// Clocks that differ by more make certificates look as if they were not good yet: the
// cluster's signer dates them back by so much.
const (
	skewError   = 5 * time.Minute
	skewWarning = 5 * time.Second
)

func checkClock(_ context.Context, v *visit) *finding {
	x, err := v.exchange()
	switch {
	case err != nil:
		return unknownf("", "the API server has not said what time it is: %v", err)
	case x.Date.IsZero():
		return unknownf("", "the API server does not say what time it is")
	}
	skew := x.At.Sub(x.Date).Round(time.Second)
	const remedy = "set the clock, and have it kept: timedatectl set-ntp true"
	switch way := direction(skew); {
	case skew.Abs() >= skewError:
		return failf(remedy, "this machine's clock is %s %s the API server's", skew.Abs(), way)
	case skew.Abs() >= skewWarning:
		return warnf(remedy, "this machine's clock is %s %s the API server's", skew.Abs(), way)
	}
	return okf("as the API server's, to the second")
}

func direction(skew time.Duration) string {
	if skew > 0 {
		return "ahead of"
	}
	return "behind"
}
