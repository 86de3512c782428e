package identity

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-dev/berth/internal/apiserver"
)

func (o *order) failed(reason Reason, err error, hint string) *Error {
	e := &Error{Reason: reason, Node: o.who.name, Server: o.access.Server, Err: err, Remedy: hint}
	if o.seen != nil {
		e.Request, e.Since = o.seen.Name, o.seen.CreationTimestamp.Time
	}
	return e
}

// blame gives an answer of the server its reason and its remedy.
func (o *order) blame(err error) *Error {
	switch {
	case apiserver.Unknown(err):
		return o.failed(ReasonUnauthorized, err, o.unknownHere())
	case apierrors.IsForbidden(err):
		return o.failed(ReasonForbidden, err, o.forbiddenHere())
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return o.failed(ReasonRejected, err, "the server does not take a kubelet's certificate request: see its message")
	case apiserver.LayerOf(err) == apiserver.LayerTLS:
		return o.failed(ReasonTLS, err, "check that the contract's CA is this cluster's and that this machine's clock is right")
	}
	return o.failed(ReasonUnreachable, err, "check name, route and firewall between this machine and "+o.access.Server)
}

// unknownHere is the remedy where the server does not know who asks.
func (o *order) unknownHere() string {
	if o.azure {
		return "check that the cluster takes tokens of Microsoft Entra ID, of this tenant and for this server (azure.serverId); for AKS, that Entra integration is on"
	}
	if o.access.Token == "" {
		return "the certificate in force is not known to this cluster: put a bootstrap token on the machine"
	}
	return fmt.Sprintf("look at the Secret bootstrap-token-%s in namespace kube-system: it may have expired; make a new one (kubeadm token create) and put it %s", tokenID(o.access.Token), o.who.tokenTarget)
}

// forbiddenHere is the remedy where who asks may not ask for certificates.
func (o *order) forbiddenHere() string {
	if o.azure {
		return "let the identity ask for certificates: berth rbac --object-id OBJECT-ID | kubectl apply -f -; the object id stands in the server's message"
	}
	if o.access.Token == "" {
		return "let the group of the certificate ask for certificates: berth rbac prints what an agent needs"
	}
	return "bind the token's group to ClusterRole system:node-bootstrapper"
}
