package report

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/artifact/oci"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
)

// installCodes are the codes for an archive that came and is not what it should
// be, by the code of its download. An artifact without an entry has one code for
// both, as published: CNI plugins, credential provider.
var installCodes = map[int]int{
	CodeKubernetesDownload: CodeKubernetesInstall,
	CodeContainerdDownload: CodeContainerd,
	CodeRuncDownload:       CodeRunc,
}

// mismatchCodes are the codes for what came and is another version's, or another
// machine's, by the code of its download.
var mismatchCodes = map[int]int{
	CodeKubernetesDownload: CodeKubernetesInstall,
	CodeCNIDownload:        CodeCNIVersion,
	CodeContainerdDownload: CodeContainerd,
	CodeRuncDownload:       CodeRunc,
}

// absentCodes are the codes for what should be in the image and is not, or is of
// another version, by the code of its download.
var absentCodes = map[int]int{
	CodeKubernetesDownload: CodeKubeletInstall,
	CodeCNIDownload:        CodeCNIVersion,
	CodeContainerdDownload: CodeContainerd,
	CodeRuncDownload:       CodeRunc,
}

// artifactCode is the published code for what went wrong with an artifact; 0
// where the state has none, and where the machine takes no file: that is no
// matter of the artifact.
func artifactCode(a *converge.ActionError, st *desired.State) int {
	if st == nil {
		return 0
	}
	r, ok := st.Lookup(a.ID).(*desired.Artifact)
	switch {
	case !ok:
		return 0
	case is[*converge.MissingError](a), is[*artifact.AbsentError](a):
		return cmp.Or(absentCodes[r.ExitCode], r.ExitCode)
	case is[*artifact.MismatchError](a):
		return cmp.Or(mismatchCodes[r.ExitCode], r.ExitCode)
	case is[*artifact.UnpackError](a):
		return cmp.Or(installCodes[r.ExitCode], r.ExitCode)
	case is[*artifact.DownloadError](a):
		return cmp.Or(registryCode(a, r), r.ExitCode)
	case refusedWrite(a):
		return 0
	}
	return r.ExitCode
}

// pullCodes are the codes for what a registry does not give, by the code of its
// download.
var pullCodes = map[int]int{
	CodeKubernetesDownload: CodeKubernetesPull,
	CodeCredentialProvider: CodeCredentialProviderPull,
}

// registryCode is the published code for a pull that failed; 0 for all others.
func registryCode(a *converge.ActionError, r *desired.Artifact) int {
	refused, mute := oci.Cause(a)
	switch {
	case mute != nil && mute.Registry == oci.MetadataService, refused != nil && refused.Registry == oci.MetadataService && refused.Temporary():
		return CodeRegistryIdentity
	case mute != nil:
		return CodeRegistryConnect
	case refused == nil:
		return 0
	case refused.Registry == oci.MetadataService, refused.Status == http.StatusUnauthorized, refused.Status == http.StatusForbidden:
		return CodeRegistryUnauthorized
	}
	return pullCodes[r.ExitCode]
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
