package apiserver

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	certificates "k8s.io/api/certificates/v1"
	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

// blameCredential says why kubelet has no kubeconfig yet: it bootstraps itself,
// and its certificate request tells how far that is.
func (w *nodeWait) blameCredential(ctx context.Context, e *MilestoneError) {
	e.Reason, e.Detail = ReasonNoCredential, w.nodeErr.Error()
	e.Remedy = "kubelet writes " + w.Kubeconfig + " when its certificate request is approved: see journalctl -u " + w.Unit
	if w.BootstrapKubeconfig == "" {
		return
	}
	k, err := kubeconfig.Read(w.Host, w.BootstrapKubeconfig)
	if err != nil {
		return
	}
	c, err := NewClient(accessOf(k))
	if err != nil {
		blameServer(e, err)
		return
	}
	defer c.Close()
	all, err := c.ListRequests(ctx, certificates.KubeAPIServerClientKubeletSignerName)
	if err != nil {
		blameServer(e, err)
		return
	}
	if r := newest(all, "system:node:"+w.Node); r != nil {
		blameRequest(e, r)
	}
}

// newest is the youngest request for a name.
func newest(all []certificates.CertificateSigningRequest, name string) *certificates.CertificateSigningRequest {
	var found *certificates.CertificateSigningRequest
	for i := range all {
		r := &all[i]
		if requestedName(r) == name && (found == nil || found.CreationTimestamp.Before(&r.CreationTimestamp)) {
			found = r
		}
	}
	return found
}

func requestedName(r *certificates.CertificateSigningRequest) string {
	block, _ := pem.Decode(r.Spec.Request)
	if block == nil {
		return ""
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return ""
	}
	return csr.Subject.CommonName
}

func blameRequest(e *MilestoneError, r *certificates.CertificateSigningRequest) {
	if len(r.Status.Certificate) > 0 {
		return
	}
	since := r.CreationTimestamp.UTC().Format(time.RFC3339)
	e.Reason, e.Detail = ReasonCSRPending, fmt.Sprintf("certificate request %s of %s is not approved", r.Name, since)
	e.Remedy = "kubectl certificate approve " + r.Name
	for _, c := range r.Status.Conditions {
		switch {
		case c.Status == core.ConditionFalse:
		case c.Type == certificates.CertificateApproved:
			e.Detail = fmt.Sprintf("certificate request %s of %s is approved but not signed", r.Name, since)
			e.Remedy = "see the log of the signer (kube-controller-manager)"
		default:
			e.Reason = ReasonCSRDenied
			e.Detail = fmt.Sprintf("certificate request %s: %s: %s: %s", r.Name, c.Type, c.Reason, c.Message)
			e.Remedy = "kubectl delete csr " + r.Name + ", then start kubelet again"
			return
		}
	}
}
