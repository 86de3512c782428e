package apiserver

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	core "k8s.io/api/core/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/internal/desired"
)

// Where a cluster that kubeadm made tells everybody of its CA, signed with each
// bootstrap token (k8s.io/cluster-bootstrap).
const (
	clusterInfoPath = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
	clusterInfoKey  = "kubeconfig"
	signaturePrefix = "jws-kubeconfig-"
	discoveryTime   = 5 * time.Minute
	// signatureTime is more than the controller manager (bootstrapsigner) takes to sign with
	// a token that was just made, or when the cluster has just started.
	signatureTime     = 3 * time.Second
	clusterInfoLength = 1 << 20
)

// DiscoveryError is a cluster whose CA could not be found out.
type DiscoveryError struct {
	Server string
	Err    error
}

// Error names the server.
func (e *DiscoveryError) Error() string {
	return "CA of the cluster at " + e.Server + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *DiscoveryError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *DiscoveryError) Hint() string {
	return "Compare cluster.server, cluster.caCertHash and the bootstrap token with what kubeadm token create --print-join-command prints, or name the CA by cluster.caFile."
}

// ClusterCA asks a cluster for its CA certificates. They are what the bootstrap
// token signed, one of them is what the pin says, and the server itself is known by
// them: then they are returned, as PEM. The token is not sent. The error is a
// *DiscoveryError.
func ClusterCA(ctx context.Context, server, pin string, token desired.Secret) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, discoveryTime)
	defer cancel()
	var last error
	signed := time.Now().Add(signatureTime)
	ca, err := backoff.Retry(ctx, func() ([]byte, error) {
		ca, err := clusterCA(ctx, server, pin, token)
		if err != nil && ctx.Err() == nil {
			last = err
		}
		if errors.Is(err, errUnsigned) && time.Now().After(signed) {
			return nil, backoff.Permanent(err)
		}
		return ca, err
	}, backoff.WithBackOff(Intervals(200*time.Millisecond, 5*time.Second)), backoff.WithMaxElapsedTime(0))
	if err != nil {
		if last == nil {
			last = err
		}
		return nil, &DiscoveryError{server, last}
	}
	return ca, nil
}

func clusterCA(ctx context.Context, server, pin string, token desired.Secret) ([]byte, error) {
	// Nothing is known of the server yet: what it says is proven by token and pin.
	said, err := clusterInfo(ctx, server, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})
	if err != nil {
		return nil, err
	}
	ca, err := provenCA(said, pin, token)
	switch {
	case errors.Is(err, errUnsigned):
		return nil, err
	case err != nil:
		return nil, backoff.Permanent(err)
	}
	pool, err := roots(ca)
	if err != nil {
		return nil, backoff.Permanent(err)
	}
	again, err := clusterInfo(ctx, server, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})
	switch {
	case distrust(err):
		return nil, backoff.Permanent(err)
	case err != nil:
		return nil, err
	}
	if again.Data[clusterInfoKey] != said.Data[clusterInfoKey] {
		return nil, errors.New("the server says another thing to who knows it: something stands between")
	}
	return ca, nil
}

func clusterInfo(ctx context.Context, server string, cfg *tls.Config) (*core.ConfigMap, error) {
	transport := newTransport(cfg, nil)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: noRedirects, Timeout: 2 * tryTimeout}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+clusterInfoPath, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	answer, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, statusError(answer)
	}
	var m core.ConfigMap
	if err := json.NewDecoder(io.LimitReader(answer.Body, clusterInfoLength)).Decode(&m); err != nil {
		return nil, fmt.Errorf("read cluster-info: %w", err)
	}
	return &m, nil
}

// statusError: an answer that no further question changes ends the asking.
func statusError(answer *http.Response) error {
	err := fmt.Errorf("the ConfigMap cluster-info in kube-public: %s", answer.Status)
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return backoff.Permanent(err)
	}
	return err
}

// provenCA is the CA that a cluster says of itself, where token and pin prove it.
func provenCA(m *core.ConfigMap, pin string, token desired.Secret) ([]byte, error) {
	text := m.Data[clusterInfoKey]
	id, secret, ok := strings.Cut(token.Reveal(), ".")
	if !ok {
		return nil, errors.New("there is no bootstrap token to prove it with")
	}
	if err := signed(text, m.Data[signaturePrefix+id], id, secret); err != nil {
		return nil, err
	}
	var k clientcmdv1.Config
	if err := yaml.Unmarshal([]byte(text), &k); err != nil {
		return nil, fmt.Errorf("read the kubeconfig in cluster-info: %w", err)
	}
	if len(k.Clusters) != 1 {
		return nil, fmt.Errorf("the kubeconfig in cluster-info has %d clusters, expected one", len(k.Clusters))
	}
	ca := k.Clusters[0].Cluster.CertificateAuthorityData
	if !Pinned(ca, pin) {
		return nil, errors.New("the public key of the cluster's CA is not the one of the digest")
	}
	return ca, nil
}

// errUnsigned: there may be a signature soon.
var errUnsigned = errors.New("the cluster has no signature")

// signed says whether a detached JWS (RFC 7515, HS256) is a token's of a text.
func signed(text, jws, id, secret string) error {
	if jws == "" {
		return fmt.Errorf("%w by token %s: it may have expired", errUnsigned, id)
	}
	head, rest, _ := strings.Cut(jws, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	var said struct{ Alg, Kid string }
	b, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil || json.Unmarshal(b, &said) != nil || said.Alg != "HS256" || said.Kid != id || payload != "" {
		return errors.New("the signature in cluster-info is not one that is known: expected HS256, detached")
	}
	got, err := base64.RawURLEncoding.DecodeString(signature)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(head + "." + base64.RawURLEncoding.EncodeToString([]byte(text))))
	if err != nil || !hmac.Equal(got, mac.Sum(nil)) {
		return fmt.Errorf("the signature in cluster-info is not by token %s", id)
	}
	return nil
}

// Pinned says whether one of PEM certificates has the public key of which a pin,
// sha256:HEX, is the digest.
func Pinned(ca []byte, pin string) bool {
	for block, rest := pem.Decode(ca); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return false
		}
		sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
		if strings.EqualFold(pin, "sha256:"+hex.EncodeToString(sum[:])) {
			return true
		}
	}
	return false
}
