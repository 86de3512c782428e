package report

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/artifact/oci"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity"
)

// number finds the exit code of an error: first what ended the run from outside
// (a stage that was not reached in time and a lock that another holds say more
// than the time), then what the machine refuses, then what the error itself knows, then what the kind of the
// resource implies.
func number(err error, st *desired.State) int {
	for _, rule := range []func(error) int{interrupted, stage, locked, timeout, space, own, contested, imported, download, credential, server} {
		if n := rule(err); n != 0 {
			return n
		}
	}
	var a *converge.ActionError
	if errors.As(err, &a) {
		if n := byResource(a, st); n != 0 {
			return n
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return CodeTimeout
	}
	if refusedWrite(err) {
		return CodeWrite
	}
	return CodeInternal
}

func interrupted(err error) int {
	if errors.Is(err, ErrInterrupted) {
		return CodeInterrupted
	}
	return 0
}

func timeout(err error) int {
	if errors.Is(err, ErrTimeout) {
		return CodeTimeout
	}
	return 0
}

func locked(err error) int {
	if _, ok := errors.AsType[*host.LockedError](err); ok {
		return CodeLocked
	}
	return 0
}

func space(err error) int {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return CodeNoSpace
	}
	return 0
}

func own(err error) int {
	var c coded
	if errors.As(err, &c) {
		return c.ExitCode()
	}
	return 0
}

// contested is the code for what others have or change: it is no fault of the kind
// of the resource.
func contested(err error) int {
	if is[*converge.OwnedElsewhereError](err) || errors.Is(err, converge.ErrChanged) {
		return CodeInternal
	}
	return 0
}

// download is the code for content that must not be used.
func download(err error) int {
	if is[*artifact.DigestError](err) || is[*oci.DigestError](err) || is[*artifact.RefusedError](err) || is[*artifact.ListError](err) {
		return CodeDigest
	}
	return 0
}

// stageCodes are the codes for the reasons why a node did not come so far. The
// others are those of the exchange with the API server.
var stageCodes = map[apiserver.Code]int{
	apiserver.CodeDNS:               CodeAPILookup,
	apiserver.CodeTCP:               CodeAPIConnect,
	apiserver.CodeHTTP:              CodeAPIConnect,
	apiserver.CodeTLS:               CodeUntrusted,
	apiserver.CodeUnauthorized:      CodeCredential,
	apiserver.CodeForbidden:         CodeCredential,
	apiserver.CodeCSRPending:        CodeCredential,
	apiserver.CodeCSRDenied:         CodeCredential,
	apiserver.CodeNoCredential:      CodeCredential,
	apiserver.CodeKubeletMissing:    CodeKubelet,
	apiserver.CodeKubeletNotStarted: CodeKubelet,
	apiserver.CodeKubeletCrash:      CodeKubelet,
	apiserver.CodeKubeletUnhealthy:  CodeKubelet,
	apiserver.CodeNotRegistered:     CodeNotRegistered,
	apiserver.CodeStaleNode:         CodeNotRegistered,
	apiserver.CodeCNINotReady:       CodeNotReady,
	apiserver.CodeRuntimeNotReady:   CodeNotReady,
	apiserver.CodeNotReady:          CodeNotReady,
}

// stage is the code for a stage that the node did not reach.
func stage(err error) int {
	e, ok := errors.AsType[*apiserver.StageError](err)
	if !ok {
		return 0
	}
	if n := server(err); n != 0 && e.Reason == apiserver.CodeDNS {
		return n // knows whether Azure's name server was asked
	}
	if n, ok := stageCodes[e.Reason]; ok {
		return n
	}
	return CodeNotRegistered
}

// credential is the code for a client certificate that was not obtained; 0 where
// the reason is the connection, which has codes of its own.
func credential(err error) int {
	switch identity.ReasonOf(err) {
	case "", identity.ReasonUnreachable:
		return 0
	case identity.ReasonTLS:
		return CodeUntrusted
	}
	return CodeCredential
}

// azureDNS is the name server of Azure's virtual networks.
const azureDNS = "168.63.129.16"

// server is the code for an exchange with the API server that failed.
func server(err error) int {
	e, ok := errors.AsType[*apiserver.Error](err)
	if !ok {
		return 0
	}
	switch e.Stage {
	case apiserver.StageDNS:
		if slices.ContainsFunc(e.Resolvers, func(r string) bool { return strings.HasPrefix(r, azureDNS+":") || r == azureDNS }) {
			return CodeAPILookupAzure
		}
		return CodeAPILookup
	case apiserver.StageTLS:
		return CodeUntrusted
	case apiserver.StageHTTP:
		if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
			return CodeCredential
		}
	}
	return CodeAPIConnect
}

func refusedWrite(err error) bool {
	var p *fs.PathError
	if !errors.As(err, &p) {
		return false
	}
	for _, e := range []error{syscall.EIO, syscall.EROFS, syscall.EPERM, syscall.EACCES, host.ErrUnsafeParent} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// byResource is the published code for a failure with a kind of resource.
func byResource(a *converge.ActionError, st *desired.State) int {
	kind, name, _ := strings.Cut(string(a.ID), ":")
	switch kind {
	case "unit":
		return unitCode(name)
	case "sysctl":
		return CodeSysctl
	case "module":
		return CodeModule
	case "trust":
		return CodeTrust
	case "credential":
		return CodeCredential
	case "artifact":
		return artifactCode(a, st)
	case "check":
		return CodeAPIConnect
	}
	return 0
}

func unitCode(name string) int {
	if name == "kubelet.service" {
		return CodeKubelet
	}
	return CodeUnitStart
}
