package provision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/artifact/remote"
	"github.com/berth-dev/berth/internal/component/binaries"
	"github.com/berth-dev/berth/internal/component/credentialprovider"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/imagestore"
	"github.com/berth-dev/berth/internal/oci"
)

// programs are a node's artifacts as its contract would make them.
func programs(t *testing.T) *desired.State {
	t.Helper()
	from := binaries.Source{URL: "https://packages.example/x"}
	provider, err := credentialprovider.Resources(credentialprovider.Settings{ConfigFile: "/etc/c", BinDir: "/opt/p", URL: from.URL})
	if err != nil {
		t.Fatal(err)
	}
	st := &desired.State{}
	st.Add(append(provider, binaries.Kubernetes(from, binaries.Kubectl), binaries.Containerd(from, "/usr/bin/containerd"),
		binaries.Runc(from, "/usr/bin/runc"), binaries.CNI(from, "bridge"))...)
	if err := st.Seal(); err != nil {
		t.Fatal(err)
	}
	return st
}

func registryAnswer(registry string, status int) error {
	return &artifact.DownloadError{Err: &remote.StatusError{Subject: remote.Subject{Registry: registry}, Status: status}}
}

// noCredential is a registry that lets nobody in, while the way to a credential
// ends as cause says.
func noCredential(cause error) error {
	return &artifact.DownloadError{Err: &remote.RequestError{Subject: remote.Subject{Registry: "r.azurecr.io"}, Err: fmt.Errorf("there is no credential: %w", cause)}}
}

// TestArtifactCodes pins the code of every way in which an artifact may fail.
func TestArtifactCodes(t *testing.T) {
	st := programs(t)
	readOnly := &fs.PathError{Op: "open", Path: "/opt/x", Err: syscall.EROFS}
	full := &fs.PathError{Op: "write", Path: "/opt/x", Err: syscall.ENOSPC}
	failures := []struct {
		name string
		err  error
	}{
		{"download", &artifact.DownloadError{Err: errors.New("HTTP status 404")}},
		{"refused by a socket", &artifact.DownloadError{Err: &fs.PathError{Op: "open", Path: "/x", Err: syscall.EACCES}}},
		{"unpack", &artifact.UnpackError{Err: errors.New("gzip: invalid header")}},
		{"member", &artifact.UnpackError{Missing: []string{"bin/x"}}},
		{"manifest", &artifact.UnpackError{Err: errors.Join(&oci.ManifestError{Err: errors.New("odd")}, &oci.SizeError{}, &oci.PlatformError{})}},
		{"architecture", &artifact.MismatchError{What: "architecture"}},
		{"version", &artifact.MismatchError{What: "version"}},
		{"not in the image", &converge.MissingError{Artifact: &desired.Artifact{Name: "x"}, Reason: "absent"}},
		{"without address", &artifact.AbsentError{Name: "x"}},
		{"digest", &artifact.DigestError{Want: "a", Got: "b"}},
		{"no digest", &artifact.RefusedError{Reason: "plain http needs a digest"}},
		{"list of digests", &artifact.ListError{Reason: "not signed"}},
		{"blob of a registry", &artifact.DownloadError{Err: &oci.DigestError{}}},
		{"registry says no", registryAnswer("r.azurecr.io", 401)},
		{"registry has it not", registryAnswer("r.azurecr.io", 404)},
		{"registry is mute", &artifact.DownloadError{Err: &remote.RequestError{Subject: remote.Subject{Registry: "r.azurecr.io"}, Err: errors.New("EOF")}}},
		{"no such identity", registryAnswer(remote.MetadataService, 400)},
		{"identities are late", registryAnswer(remote.MetadataService, 503)},
		{"identities are mute", &artifact.DownloadError{Err: &remote.RequestError{Subject: remote.Subject{Registry: remote.MetadataService}, Err: errors.New("EOF")}}},
		{"exchange is refused", noCredential(&remote.StatusError{Subject: remote.Subject{Registry: "r.azurecr.io"}, Status: 401})},
		{"exchange is mute", noCredential(&remote.RequestError{Subject: remote.Subject{Registry: "r.azurecr.io"}, Err: errors.New("EOF")})},
		{"nobody to exchange", noCredential(&remote.StatusError{Subject: remote.Subject{Registry: remote.MetadataService}, Status: 400})},
		{"late to exchange", noCredential(&remote.StatusError{Subject: remote.Subject{Registry: remote.MetadataService}, Status: 503})},
		{"mute to exchange", noCredential(&remote.RequestError{Subject: remote.Subject{Registry: remote.MetadataService}, Err: errors.New("EOF")})},
		{"disk full", full},
		{"unpack to a full disk", &artifact.UnpackError{Err: full}},
		{"read-only", readOnly},
		{"time over", fmt.Errorf("%w: %w", exitcode.ErrTimeout, context.DeadlineExceeded)},
		{"anything else", errors.New("odd")},
	}
	want := map[desired.ID][]int{
		"artifact:kubernetes":              {31, 31, 204, 204, 204, 204, 204, 121, 121, 251, 251, 251, 251, 212, 207, 211, 212, 210, 210, 212, 211, 212, 210, 210, 248, 248, 254, 124, 31},
		"artifact:cni-plugins":             {41, 41, 41, 41, 41, 206, 206, 206, 206, 251, 251, 251, 251, 212, 41, 211, 212, 210, 210, 212, 211, 212, 210, 210, 248, 248, 254, 124, 41},
		"artifact:containerd":              {70, 70, 28, 28, 28, 28, 28, 28, 28, 251, 251, 251, 251, 212, 70, 211, 212, 210, 210, 212, 211, 212, 210, 210, 248, 248, 254, 124, 70},
		"artifact:runc":                    {71, 71, 29, 29, 29, 29, 29, 29, 29, 251, 251, 251, 251, 212, 71, 211, 212, 210, 210, 212, 211, 212, 210, 210, 248, 248, 254, 124, 71},
		"artifact:acr-credential-provider": {205, 205, 205, 205, 205, 205, 205, 205, 205, 251, 251, 251, 251, 212, 208, 211, 212, 210, 210, 212, 211, 212, 210, 210, 248, 248, 254, 124, 205},
	}
	for _, r := range st.Resources {
		if _, ok := r.(*desired.Artifact); ok && want[r.ID()] == nil {
			t.Errorf("%s has no row", r.ID())
		}
	}
	for id, codes := range want {
		for i, f := range failures {
			t.Run(string(id)+" "+f.name, func(t *testing.T) {
				got := Explain(action(id, converge.VerbFetch, f.err))
				if got.Code.Number != codes[i] || got.Code.Meaning == "a code that is not in the registry" {
					t.Errorf("code %d %s, want %d", got.Code.Number, got.Code.Name, codes[i])
				}
			})
		}
	}
}

// TestImageCodes pins the code of a failing image.
func TestImageCodes(t *testing.T) {
	pull := func(err error) error { return &artifact.PullError{Source: "oci://r.azurecr.io/pause:1", Err: err} }
	answer := func(registry string, status int) error {
		return pull(&remote.StatusError{Subject: remote.Subject{Registry: registry}, Status: status})
	}
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"not there":       {answer("r.azurecr.io", 404), exitcode.SandboxImage},
		"in trouble":      {answer("r.azurecr.io", 503), exitcode.SandboxImage},
		"not let in":      {answer("r.azurecr.io", 403), exitcode.RegistryUnauthorized},
		"no identity":     {answer(remote.MetadataService, 503), exitcode.RegistryIdentity},
		"no answer":       {pull(&remote.RequestError{Subject: remote.Subject{Registry: "r.azurecr.io"}, Err: syscall.ECONNREFUSED}), exitcode.RegistryConnect},
		"no digest":       {&artifact.RefusedError{NoDigest: true}, exitcode.Digest},
		"of a bundle":     {errors.New("no bundle holds it"), exitcode.ImagePull},
		"containerd full": {&imagestore.NoSpaceError{Err: errors.New("full")}, exitcode.NoSpace},
	} {
		err := &converge.ActionError{ID: desired.ImageID("mcr.microsoft.com/pause:1"), Verb: converge.VerbImport, Err: c.err}
		if got := Explain(err).Code.Number; got != c.want {
			t.Errorf("%s: code %d, want %d", name, got, c.want)
		}
	}
}
