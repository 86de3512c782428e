package identity

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-dev/berth/internal/apiserver"
)

func (o *order) failed(reason Reason, err error, hint string) *Error {
	e := &Error{Reason: reason, Node: o.c.NodeName, Server: o.c.Server, Err: err, Remedy: hint}
	if o.seen != nil {
		e.Request, e.Since = o.seen.Name, o.seen.CreationTimestamp.Time
	}
	return e
}

// blame gives an answer of the server its reason and its remedy.
func (o *order) blame(err error) *Error {
	token := fmt.Sprintf("look at the Secret bootstrap-token-%s in namespace kube-system: it may have expired; make a new one (kubeadm token create) and put it into the contract", tokenID(o.c.Token))
	switch {
	case apierrors.IsUnauthorized(err):
		return o.failed(ReasonUnauthorized, err, token)
	case apierrors.IsForbidden(err):
		return o.failed(ReasonForbidden, err, "bind the token's group to ClusterRole system:node-bootstrapper")
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return o.failed(ReasonRejected, err, "the server does not take a kubelet's certificate request: see its message")
	case apiserver.LayerOf(err) == apiserver.LayerTLS:
		return o.failed(ReasonTLS, err, "check that the contract's CA is this cluster's and that this machine's clock is right")
	}
	return o.failed(ReasonUnreachable, err, "check name, route and firewall between this machine and "+o.c.Server)
}
