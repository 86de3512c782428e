package provision

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/artifact/remote"
	"github.com/berth-dev/berth/internal/component/gpu"
	"github.com/berth-dev/berth/internal/component/imageunits"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/localdns"
	"github.com/berth-dev/berth/internal/component/nics"
	"github.com/berth-dev/berth/internal/component/packetfilter"
	"github.com/berth-dev/berth/internal/component/searchdomain"
	"github.com/berth-dev/berth/internal/component/securebootstrap"
	"github.com/berth-dev/berth/internal/component/ssh"
	"github.com/berth-dev/berth/internal/component/streaming"
	"github.com/berth-dev/berth/internal/component/swap"
	"github.com/berth-dev/berth/internal/component/tempdisk"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/kind/nftables"
	swapkind "github.com/berth-dev/berth/internal/converge/kind/swap"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
)

// defect asks for a report.
const defect = "This is a defect of berth: report it with the log at " + report.LogPath + "."

// Explain says what an error means for operators. The engine and the machine know
// none of the published codes: what their errors mean for a node is said here.
func Explain(err error) report.Failure { return report.Classify(meaning(err)) }

// ExplainCommand is Explain for what is no run of provision: that alone writes the log and
// has the document's time that hints of its codes lead to. The hint may be empty.
func ExplainCommand(err error) report.Failure {
	f := Explain(err)
	if hint, ok := commandHints[f.Code.Number]; ok && f.Hint == f.Code.Hint {
		f.Hint = hint
	}
	return f
}

// ExplainWithoutLog is ExplainCommand where neither a result nor a log is written: the fields
// are all that a hint can lead to.
func ExplainWithoutLog(err error) report.Failure {
	f := ExplainCommand(err)
	if f.Hint == "" && f.Field != "" {
		f.Hint = "Correct the fields that are named."
	}
	return f
}

var commandHints = map[int]string{
	exitcode.Internal:    "",
	exitcode.Interrupted: "Run it again: it continues where it stopped.",
	exitcode.Timeout:     "Look at what was being done and at berth timeline; give it more time if the step is only slow.",
}

// meaning gives an error what only the run knows of it.
func meaning(err error) error {
	if err == nil {
		return nil
	}
	e := &exitcode.Error{Number: code(err), Err: err}
	if a, ok := errors.AsType[*converge.ActionError](err); ok {
		e.During, e.At = string(a.Verb)+" "+string(a.ID), a.Field
	}
	switch {
	case is[*converge.PanicError](err):
		e.Remedy = defect
	case errors.Is(err, host.ErrNoSystemd): // no unit can be looked at
		e.Remedy = "Boot the machine with systemd; --root DIR is for a machine that does not run."
	}
	return e
}

// code is what an error says by itself, then what the kind of the resource
// implies; 0 where neither does. A lock that another holds says more than that
// the time is over. A defect, and what others have or change, is not implied by
// the kind.
func code(err error) int {
	if is[*host.LockedError](err) && !errors.Is(err, exitcode.ErrInterrupted) {
		return exitcode.Locked
	}
	if f, ok := errors.AsType[*swapkind.Error](err); ok && errors.Is(f, swapkind.ErrNoRoom) {
		return exitcode.SwapSpace
	}
	if n := exitcode.Known(err); n != 0 {
		return n
	}
	if is[*converge.PanicError](err) || is[*converge.OwnedElsewhereError](err) || errors.Is(err, converge.ErrChanged) {
		return exitcode.Internal
	}
	if a, ok := errors.AsType[*converge.ActionError](err); ok && resourceCode(a) != 0 {
		return resourceCode(a)
	}
	if unsafeParent(err) {
		return exitcode.Write
	}
	return 0
}

// resourceCode is the published code for a failure with a kind of resource.
func resourceCode(a *converge.ActionError) int {
	kind, name, _ := strings.Cut(string(a.ID), ":")
	switch kind {
	case "unit":
		if name == gpu.Unit {
			return gpuCode(a.Err)
		}
		return unitCode(name, a.Verb)
	case "artifact":
		return artifactCode(a, artifacts[name])
	case "image":
		return imageCode(a)
	}
	if f, ok := errors.AsType[*nftables.Error](a.Err); ok {
		return packetFilterCode(f.Filter)
	}
	return kinds[kind]
}

// unitCode: of the SSH server a reload is about its keys, anything else about
// whether it is there.
func unitCode(name string, verb converge.Verb) int {
	switch {
	case name == kubelet.Unit, name == tempdisk.Unit: // without which kubelet does not start
		return exitcode.Kubelet
	case name == gpu.DevicePlugin:
		return exitcode.GPUDevicePlugin
	case name == gpu.DRADriver:
		return exitcode.DRADriver
	case name == localdns.Unit:
		return exitcode.LocalDNS
	case name == securebootstrap.Unit:
		return exitcode.SecureBootstrap
	case name == swap.Unit, path.Ext(name) == ".swap":
		return exitcode.SwapFile
	case name == imageunits.Snapshots:
		return exitcode.SnapshotUpdate
	case name == nics.Unit:
		return exitcode.SecondaryNIC
	case name == searchdomain.Unit:
		return exitcode.SearchDomain
	case streaming.IsUnit(name):
		return exitcode.Streaming
	case ssh.IsUnit(name) && verb == converge.VerbReload:
		return exitcode.PublicKeys
	case ssh.IsUnit(name):
		return exitcode.DisableSSH
	}
	return exitcode.UnitStart
}

// gpuCode is what the unit itself ended with, where that is a code of GPUs.
func gpuCode(err error) int {
	job, ok := errors.AsType[*host.JobError](err)
	if n := exitcode.GPUDriver; !ok || !slices.Contains(gpuCodes, int(job.Status.ExecMainStatus)) {
		return n
	}
	return int(job.Status.ExecMainStatus)
}

var gpuCodes = []int{exitcode.GPUDriver, exitcode.GPUInfoROM, exitcode.GPUDecision}

// imageCode: what is pulled is the image of the sandbox, or of a driver.
func imageCode(a *converge.ActionError) int {
	if strings.HasPrefix(string(a.ID), string(desired.ImageID(gpu.Repository))) {
		return exitcode.GPUDriver
	}
	if is[*artifact.PullError](a) {
		return exitcode.SandboxImage
	}
	return exitcode.ImagePull
}

// packetFilterCode is the published one where the table has a rule that it is for.
func packetFilterCode(f *desired.PacketFilter) int {
	for _, c := range f.Chains {
		switch {
		case c.Name != packetfilter.MetadataChain:
		case c.Priority == packetfilter.Mangle:
			return exitcode.MetadataInMangle
		default:
			return exitcode.MetadataInFilter
		}
	}
	return exitcode.PacketFilter
}

var kinds = map[string]int{
	"sysctl":     exitcode.Sysctl,
	"module":     exitcode.Module,
	"trust":      exitcode.Trust,
	"credential": exitcode.Credential,
	"check":      exitcode.APIConnect, // that of a way out has its own
	"nftables":   exitcode.PacketFilter,
	"sshd":       exitcode.PublicKeys,
	"swap":       exitcode.SwapFile,
	"sysfs":      exitcode.Sysctl,
}

// artifactCodes are the published codes for what goes wrong with an artifact.
type artifactCodes struct {
	// download: it does not come; pull: its registry does not have it.
	download, pull int
	// install: what came is not what it should be; mismatch: it is another
	// version's, or another machine's.
	install, mismatch int
	// absent: it should be in the image and is not, or is of another version.
	absent int
}

// artifacts are the codes by the artifact's name.
var artifacts = map[string]artifactCodes{
	"kubernetes": {
		download: exitcode.KubernetesDownload, pull: exitcode.KubernetesPull,
		install: exitcode.KubernetesInstall, mismatch: exitcode.KubernetesInstall, absent: exitcode.KubeletInstall,
	},
	"kubectl": {
		download: exitcode.KubectlInstall, pull: exitcode.KubectlInstall,
		install: exitcode.KubectlInstall, mismatch: exitcode.KubectlInstall, absent: exitcode.KubectlInstall,
	},
	"cni-plugins": {
		download: exitcode.CNIDownload, pull: exitcode.CNIDownload,
		install: exitcode.CNIDownload, mismatch: exitcode.CNIVersion, absent: exitcode.CNIVersion,
	},
	"azure-cni": {
		download: exitcode.CNIDownload, pull: exitcode.CNIDownload,
		install: exitcode.CNIDownload, mismatch: exitcode.CNIDownload, absent: exitcode.CNIDownload,
	},
	"containerd": {
		download: exitcode.ContainerdDownload, pull: exitcode.ContainerdDownload,
		install: exitcode.Containerd, mismatch: exitcode.Containerd, absent: exitcode.Containerd,
	},
	"runc": {
		download: exitcode.RuncDownload, pull: exitcode.RuncDownload,
		install: exitcode.Runc, mismatch: exitcode.Runc, absent: exitcode.Runc,
	},
	"localdns":   {absent: exitcode.LocalDNSProgram},
	gpu.Artifact: {absent: exitcode.GPUPackages},
	securebootstrap.Artifact: {
		download: exitcode.SecureBootstrapDownload, pull: exitcode.SecureBootstrapDownload,
		install: exitcode.SecureBootstrapDownload, mismatch: exitcode.SecureBootstrapDownload, absent: exitcode.SecureBootstrapDownload,
	},
	"acr-credential-provider": {
		download: exitcode.CredentialProvider, pull: exitcode.CredentialProviderPull,
		install: exitcode.CredentialProvider, mismatch: exitcode.CredentialProvider, absent: exitcode.CredentialProvider,
	},
}

// artifactCode is the code for what went wrong with an artifact; 0 where the
// machine takes no file: that is no matter of the artifact.
func artifactCode(err error, codes artifactCodes) int {
	switch {
	case is[*converge.MissingError](err), is[*artifact.AbsentError](err):
		return codes.absent
	case is[*artifact.MismatchError](err):
		return codes.mismatch
	case is[*artifact.UnpackError](err):
		return codes.install
	case is[*artifact.DownloadError](err):
		if refused, _ := remote.Cause(err); refused != nil {
			return codes.pull
		}
		return codes.download
	case exitcode.RefusedWrite(err), unsafeParent(err):
		return 0
	}
	return codes.download
}

// unsafeParent says that a path leads where no file may be written.
func unsafeParent(err error) bool { return errors.Is(err, host.ErrUnsafeParent) }

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
