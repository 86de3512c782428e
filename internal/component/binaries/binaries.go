// Package binaries holds the programs of a node: in the image, or fetched.
package binaries

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/component/cni"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

// Where the programs of Kubernetes stand, as published.
const (
	Kubelet = "/opt/bin/kubelet"
	Kubectl = "/opt/bin/kubectl"
	Kubeadm = "/opt/bin/kubeadm"
)

// Source is where a program comes from when the image does not have it.
type Source struct {
	// URL is an archive, or for runc the program; empty: the image must have it.
	URL string
	// Implied: nobody named the URL. What the image lacks of the rest is not wanted.
	Implied bool
	// Version is what it must say of itself, but for what a distribution appends
	// ("-akslts", "+build5", "-3~deb12u1"); empty: any.
	Version string
}

// name is that of the file behind the URL; a registry has none.
func (s Source) name() string {
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme == "oci" {
		return ""
	}
	return path.Base(u.Path)
}

// packaged says whether the source is a package of a distribution: its files lie
// there as on the machine. None of its scripts runs.
func (s Source) packaged() bool {
	return slices.Contains([]string{".deb", ".rpm"}, strings.ToLower(path.Ext(s.name())))
}

func (s Source) artifact(name string, files ...desired.ArtifactFile) *desired.Artifact {
	a := &desired.Artifact{Name: name, Version: release(s.Version)}
	if s.URL != "" {
		a.URLs = []string{s.URL}
	}
	for _, f := range files {
		f.Mode = 0o755
		a.Files = append(a.Files, f)
	}
	return a
}

// Kubernetes is kubelet, and where an archive is named tools for whoever logs in, at
// their paths, from an archive laid out like the project's own node archive.
func Kubernetes(s Source, tools ...string) *desired.Artifact {
	files := []desired.ArtifactFile{{Member: "kubernetes/node/bin/kubelet", Path: Kubelet}}
	if s.URL != "" && !s.Implied {
		for _, at := range tools {
			files = append(files, desired.ArtifactFile{Member: "kubernetes/node/bin/" + path.Base(at), Path: at})
		}
	}
	return s.artifact("kubernetes", files...)
}

// Packaged is a program of Kubernetes out of a package that the image holds: name
// is the artifact's, at the program's path, file the package's.
func Packaged(name, at, version, file string) *desired.Artifact {
	from := url.URL{Scheme: "file", Path: file}
	return Source{URL: from.String(), Version: version}.artifact(name,
		desired.ArtifactFile{Member: "usr/bin/" + path.Base(at), Path: at})
}

// Versioned is a program of Kubernetes that the image holds under the name of its
// version, linked into place. The link comes after the proof of the version.
func Versioned(program, version string) (proof *desired.Artifact, link *desired.Link) {
	at := program + "-" + version
	proof = Source{Version: version}.artifact(path.Base(at), desired.ArtifactFile{Path: at})
	return proof, &desired.Link{Path: program, Target: at, Base: desired.Base{After: []desired.ID{proof.ID()}}}
}

// Containerd is the runtime and its shim, from an archive laid out like the
// project's own or from a distribution's package. Program is the path of containerd; the others stand beside it.
func Containerd(s Source, program string) *desired.Artifact {
	dir, from := path.Dir(program), "bin/"
	if s.packaged() {
		from = "usr/bin/"
	}
	files := []desired.ArtifactFile{
		{Member: from + "containerd", Path: program},
		{Member: from + "containerd-shim-runc-v2", Path: dir + "/containerd-shim-runc-v2"},
	}
	if s.URL != "" && !s.Implied {
		files = append(files, desired.ArtifactFile{Member: from + "ctr", Path: dir + "/ctr"})
	}
	return s.artifact("containerd", files...)
}

// Runc is the program that makes containers.
func Runc(s Source, program string) *desired.Artifact {
	file := desired.ArtifactFile{Path: program}
	switch {
	case !s.packaged():
	case strings.HasPrefix(s.name(), "runc_"): // Debian's own
		file.Member = "usr/sbin/runc"
	default:
		file.Member = "usr/bin/runc"
	}
	return s.artifact("runc", file)
}

// CNI are reference plugins of the container network, by name.
func CNI(s Source, plugins ...string) *desired.Artifact {
	var files []desired.ArtifactFile
	for _, p := range plugins {
		files = append(files, desired.ArtifactFile{Member: p, Path: cni.BinDir + "/" + p})
	}
	return s.artifact("cni-plugins", files...)
}

// AzureCNI are the plugins of Azure's own network.
func AzureCNI(s Source) *desired.Artifact {
	var files []desired.ArtifactFile
	for _, p := range cni.AzurePlugins {
		files = append(files, desired.ArtifactFile{Member: p, Path: cni.BinDir + "/" + p})
	}
	return s.artifact("azure-cni", files...)
}

var released = lazyregexp.New(`^([0-9]+\.[0-9]+\.[0-9]+(?:-(?:alpha|beta|rc)\.?[0-9.]*)?)(?:$|[-+~])`)

// release is a version without what a distribution appends: programs are read
// so, too.
func release(version string) string {
	if m := released().FindStringSubmatch(version); m != nil {
		return m[1]
	}
	return version
}
