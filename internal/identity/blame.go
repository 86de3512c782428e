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
		return o.failed(ReasonForbidden, err, "bind the token's group to ClusterRole system:node-bootstrapper")
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return o.failed(ReasonRejected, err, "the server does not take a kubelet's certificate request: see its message")
	case apiserver.LayerOf(err) == apiserver.LayerTLS:
		return o.failed(ReasonTLS, err, "check that the contract's CA is this cluster's and that this machine's clock is right")
	}
	return o.failed(ReasonUnreachable, err, "check name, route and firewall between this machine and "+o.access.Server)
}

// unknownHere is the remedy where the server does not know who asks.
func (o *order) unknownHere() string {
	if o.access.Token == "" {
		return "the certificate in force is not known to this cluster: put a bootstrap token on the machine"
	}
	return fmt.Sprintf("look at the Secret bootstrap-token-%s in namespace kube-system: it may have expired; make a new one (kubeadm token create) and put it into the contract", tokenID(o.access.Token))
}
