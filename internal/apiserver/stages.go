package apiserver

import (
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/internal/exitcode"
)

// NodeStage is how far a machine is on its way to a node.
type NodeStage string

// The stages, in their order.
const (
	// StageKubelet: kubelet runs and calls itself healthy.
	StageKubelet NodeStage = "kubelet"
	// StageRegistered: the Node object exists and speaks of this machine's
	// present boot.
	StageRegistered NodeStage = "registered"
	// StageReady: the Node's Ready condition is true, said by the kubelet that
	// runs now.
	StageReady NodeStage = "ready"
)

// Reached is when each stage was seen; zero if it was not.
type Reached struct {
	// UID is the Node object's.
	UID                        string
	Kubelet, Registered, Ready time.Time
}

func (r *Reached) at(s NodeStage) *time.Time {
	switch s {
	case StageKubelet:
		return &r.Kubelet
	case StageRegistered:
		return &r.Registered
	}
	return &r.Ready
}

// next is the first stage that was not reached.
func (r *Reached) next() NodeStage {
	for _, s := range []NodeStage{StageKubelet, StageRegistered} {
		if r.at(s).IsZero() {
			return s
		}
	}
	return StageReady
}

// Reason says why a stage was not reached.
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

// StageError is a stage that was not reached.
type StageError struct {
	Stage  NodeStage
	Reason Reason
	// Detail is what was seen, with kubelet's last lines where they matter; it
	// may have several lines.
	Detail string
	Remedy string
	// Err is what ended the wait: the context's end, or nil where kubelet's own
	// state did.
	Err error
}

var stageText = map[NodeStage]string{
	StageKubelet:    "kubelet is not healthy",
	StageRegistered: "the Node is not registered",
	StageReady:      "the Node is not Ready",
}

// Error says what is missing, why, and what was seen.
func (e *StageError) Error() string {
	return fmt.Sprintf("%s: %s: %s", stageText[e.Stage], e.Reason, e.Detail)
}

// Unwrap returns what ended the wait.
func (e *StageError) Unwrap() error { return e.Err }

// Hint is the remedy.
func (e *StageError) Hint() string { return e.Remedy }

// Doing is what was waited for.
func (e *StageError) Doing() string { return "wait for " + string(e.Stage) }

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
func (e *StageError) ExitCode() int {
	if at, ok := errors.AsType[*Error](e.Err); ok && e.Reason == ReasonDNS {
		return at.ExitCode() // knows whether Azure's name server was asked
	}
	if n, ok := exitCodes[e.Reason]; ok {
		return n
	}
	return exitcode.NotRegistered
}
