package apiserver

import (
	"fmt"
	"time"
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
	Hint   string
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
