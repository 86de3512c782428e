package apiserver

import (
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/internal/exitcode"
)

// Milestone is how far a machine is on its way to a node.
type Milestone string

// The milestones, in their order.
const (
	// MilestoneKubelet: kubelet runs and calls itself healthy.
	MilestoneKubelet Milestone = "kubelet"
	// MilestoneRegistered: the Node object exists and speaks of this machine's
	// present boot.
	MilestoneRegistered Milestone = "registered"
	// MilestoneReady: the Node's Ready condition is true, said by the kubelet that
	// runs now.
	MilestoneReady Milestone = "ready"
)

// Reached is when each milestone was seen; zero if it was not.
type Reached struct {
	// UID is the Node object's.
	UID                        string
	Kubelet, Registered, Ready time.Time
}

func (r *Reached) at(s Milestone) *time.Time {
	switch s {
	case MilestoneKubelet:
		return &r.Kubelet
	case MilestoneRegistered:
		return &r.Registered
	}
	return &r.Ready
}

// next is the first milestone that was not reached.
func (r *Reached) next() Milestone {
	for _, s := range []Milestone{MilestoneKubelet, MilestoneRegistered} {
		if r.at(s).IsZero() {
			return s
		}
	}
	return MilestoneReady
}

// Reason says why a milestone was not reached.
type Reason string

// The reasons.
const (
	ReasonDNS               Reason = "dns"
	ReasonTCP               Reason = "tcp"
	ReasonTLS               Reason = "tls"
	ReasonHTTP              Reason = "http"
	ReasonUnauthorized      Reason = "unauthorized"
	ReasonForbidden         Reason = "forbidden"
	ReasonCSRPending        Reason = "csr-pending"
	ReasonCSRDenied         Reason = "csr-denied"
	ReasonNoCredential      Reason = "no-credential"
	ReasonKubeletMissing    Reason = "kubelet-missing"
	ReasonKubeletNotStarted Reason = "kubelet-not-started"
	ReasonKubeletCrash      Reason = "kubelet-crash"
	ReasonKubeletUnhealthy  Reason = "kubelet-unhealthy"
	ReasonNotRegistered     Reason = "not-registered"
	ReasonStaleNode         Reason = "stale-node"
	ReasonCNINotReady       Reason = "cni-not-ready"
	ReasonRuntimeNotReady   Reason = "runtime-not-ready"
	ReasonNotReady          Reason = "not-ready"
)

// MilestoneError is a milestone that was not reached.
type MilestoneError struct {
	Milestone Milestone
	Reason    Reason
	// Detail is what was seen, with kubelet's last lines where they matter; it
	// may have several lines.
	Detail string
	Remedy string
	// Err is what ended the wait: the context's end, or nil where kubelet's own
	// state did.
	Err error
}

var milestoneText = map[Milestone]string{
	MilestoneKubelet:    "kubelet is not healthy",
	MilestoneRegistered: "the Node is not registered",
	MilestoneReady:      "the Node is not Ready",
}

// Error says what is missing, why, and what was seen.
func (e *MilestoneError) Error() string {
	return fmt.Sprintf("%s: %s: %s", milestoneText[e.Milestone], e.Reason, e.Detail)
}

// Unwrap returns what ended the wait.
func (e *MilestoneError) Unwrap() error { return e.Err }

// Hint is the remedy.
func (e *MilestoneError) Hint() string { return e.Remedy }

// Doing is what was waited for.
func (e *MilestoneError) Doing() string { return "wait for " + string(e.Milestone) }

// exitCodes are the published codes for the reasons. The others are those of the
// exchange with the API server.
var exitCodes = map[Reason]int{
	ReasonDNS:               exitcode.APILookup,
	ReasonTCP:               exitcode.APIConnect,
	ReasonHTTP:              exitcode.APIConnect,
	ReasonTLS:               exitcode.Untrusted,
	ReasonUnauthorized:      exitcode.Credential,
	ReasonForbidden:         exitcode.Credential,
	ReasonCSRPending:        exitcode.Credential,
	ReasonCSRDenied:         exitcode.Credential,
	ReasonNoCredential:      exitcode.Credential,
	ReasonKubeletMissing:    exitcode.Kubelet,
	ReasonKubeletNotStarted: exitcode.Kubelet,
	ReasonKubeletCrash:      exitcode.Kubelet,
	ReasonKubeletUnhealthy:  exitcode.Kubelet,
	ReasonNotRegistered:     exitcode.NotRegistered,
	ReasonStaleNode:         exitcode.NotRegistered,
	ReasonCNINotReady:       exitcode.NotReady,
	ReasonRuntimeNotReady:   exitcode.NotReady,
	ReasonNotReady:          exitcode.NotReady,
}

// ExitCode is the published code for the reason.
func (e *MilestoneError) ExitCode() int {
	if at, ok := errors.AsType[*Error](e.Err); ok && e.Reason == ReasonDNS {
		return at.ExitCode() // knows whether Azure's name server was asked
	}
	if n, ok := exitCodes[e.Reason]; ok {
		return n
	}
	return exitcode.NotRegistered
}
