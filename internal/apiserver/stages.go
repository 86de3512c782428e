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

// Code says why a stage was not reached.
type Code string

// The codes.
const (
	CodeDNS               Code = "dns"
	CodeTCP               Code = "tcp"
	CodeTLS               Code = "tls"
	CodeHTTP              Code = "http"
	CodeUnauthorized      Code = "unauthorized"
	CodeForbidden         Code = "forbidden"
	CodeCSRPending        Code = "csr-pending"
	CodeCSRDenied         Code = "csr-denied"
	CodeNoCredential      Code = "no-credential"
	CodeKubeletMissing    Code = "kubelet-missing"
	CodeKubeletNotStarted Code = "kubelet-not-started"
	CodeKubeletCrash      Code = "kubelet-crash"
	CodeKubeletUnhealthy  Code = "kubelet-unhealthy"
	CodeNotRegistered     Code = "not-registered"
	CodeStaleNode         Code = "stale-node"
	CodeCNINotReady       Code = "cni-not-ready"
	CodeRuntimeNotReady   Code = "runtime-not-ready"
	CodeNotReady          Code = "not-ready"
)

// StageError is a stage that was not reached.
type StageError struct {
	Stage  NodeStage
	Reason Code
	// Detail is what was seen, with kubelet's last lines where they matter; it
	// may have several lines.
	Detail string
	Remedy string
	// Err is what ended the wait: the context's end, or nil where kubelet's own
	// state did.
	Err error
}

var stageGoal = map[NodeStage]string{
	StageKubelet:    "kubelet is not healthy",
	StageRegistered: "the Node is not registered",
	StageReady:      "the Node is not Ready",
}

// Error says what is missing, why, and what was seen.
func (e *StageError) Error() string {
	return fmt.Sprintf("%s: %s: %s", stageGoal[e.Stage], e.Reason, e.Detail)
}

// Unwrap returns what ended the wait.
func (e *StageError) Unwrap() error { return e.Err }

// Hint is the remedy.
func (e *StageError) Hint() string { return e.Remedy }

// Doing is what was waited for.
func (e *StageError) Doing() string { return "wait for " + string(e.Stage) }

// exitCodes are the published codes for the reasons. The others are those of the
// exchange with the API server.
var exitCodes = map[Code]int{
	CodeDNS:               exitcode.APILookup,
	CodeTCP:               exitcode.APIConnect,
	CodeHTTP:              exitcode.APIConnect,
	CodeTLS:               exitcode.Untrusted,
	CodeUnauthorized:      exitcode.Credential,
	CodeForbidden:         exitcode.Credential,
	CodeCSRPending:        exitcode.Credential,
	CodeCSRDenied:         exitcode.Credential,
	CodeNoCredential:      exitcode.Credential,
	CodeKubeletMissing:    exitcode.Kubelet,
	CodeKubeletNotStarted: exitcode.Kubelet,
	CodeKubeletCrash:      exitcode.Kubelet,
	CodeKubeletUnhealthy:  exitcode.Kubelet,
	CodeNotRegistered:     exitcode.NotRegistered,
	CodeStaleNode:         exitcode.NotRegistered,
	CodeCNINotReady:       exitcode.NotReady,
	CodeRuntimeNotReady:   exitcode.NotReady,
	CodeNotReady:          exitcode.NotReady,
}

// ExitCode is the published code for the reason.
func (e *StageError) ExitCode() int {
	if at, ok := errors.AsType[*Error](e.Err); ok && e.Reason == CodeDNS {
		return at.ExitCode() // knows whether Azure's name server was asked
	}
	if n, ok := exitCodes[e.Reason]; ok {
		return n
	}
	return exitcode.NotRegistered
}
