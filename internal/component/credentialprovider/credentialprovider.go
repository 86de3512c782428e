// Package credentialprovider lets kubelet pull images from Azure registries with
// the node's identity.
package credentialprovider

import (
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1 "k8s.io/kubelet/config/v1"

	"github.com/berth-dev/berth/internal/component/azurejson"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/yamltext"
)

// The flags by which kubelet finds the provider. Both or neither.
const (
	ConfigFlag = "--image-credential-provider-config"
	BinFlag    = "--image-credential-provider-bin-dir"
)

// Program is the provider's own name; kubelet knows it by a shorter one.
const Program = "azure-acr-credential-provider"

const name = "acr-credential-provider"

// Settings are what differs from node to node.
type Settings struct {
	// ConfigFile and BinDir are the values of kubelet's flags.
	ConfigFile, BinDir string
	// URL is an archive of the provider, Package the path of a package of the machine
	// that counts where there is none. Both empty: the image has the provider.
	URL, Package string
	// RegistrySuffix is the DNS suffix of the registries of another cloud.
	RegistrySuffix string
	// Registry is one more, host or host/path, that wants the node's identity.
	Registry string
	// Mirror is the registry, host or host/path, that stands in for MirrorOf; its
	// host decides which credential is asked for.
	Mirror, MirrorOf string
	// Pods lets the provider act for a pod's service account; nil: as the node alone.
	Pods *PodIdentity
}

// suffixes of the registries of Azure's clouds.
var suffixes = []string{"azurecr.io", "azurecr.cn", "azurecr.de", "azurecr.us"}

// Resources are the program and its configuration.
func Resources(s Settings) ([]desired.Resource, error) {
	b, err := yamltext.Marshal(config(s))
	if err != nil {
		return nil, fmt.Errorf("write credential provider configuration: %w", err)
	}
	return []desired.Resource{program(s), &desired.File{
		Path: s.ConfigFile, Content: desired.Bytes(b), Mode: 0o644, Life: desired.Managed,
	}}, nil
}

func program(s Settings) *desired.Artifact {
	file := desired.ArtifactFile{Member: Program, Path: path.Join(s.BinDir, name), Mode: 0o755}
	from := s.URL
	if from == "" && s.Package != "" {
		file.Member = "usr/bin/" + Program
		from = (&url.URL{Scheme: "file", Path: s.Package}).String()
	}
	a := &desired.Artifact{Name: name, Files: []desired.ArtifactFile{file}}
	if from != "" {
		a.URLs = []string{from}
	}
	return a
}

func config(s Settings) kubeletv1.CredentialProviderConfig {
	p := kubeletv1.CredentialProvider{
		Name:                 name,
		APIVersion:           "credentialprovider.kubelet.k8s.io/v1",
		DefaultCacheDuration: &metav1.Duration{Duration: 10 * time.Minute},
		Args:                 []string{azurejson.Path},
	}
	for _, suffix := range suffixes {
		p.MatchImages = append(p.MatchImages, "*."+suffix)
	}
	for _, suffix := range suffixes { // replicas of a registry, each in its region
		p.MatchImages = append(p.MatchImages, "*.*.geo."+suffix)
	}
	if s.RegistrySuffix != "" {
		p.MatchImages = append(p.MatchImages, "*."+s.RegistrySuffix)
	}
	if s.Registry != "" {
		p.MatchImages = append(p.MatchImages, s.Registry)
	}
	if s.Mirror != "" {
		host, _, _ := strings.Cut(s.Mirror, "/")
		p.MatchImages = append(p.MatchImages, s.MirrorOf)
		p.Args = append(p.Args, "--registry-mirror="+s.MirrorOf+":"+host)
	}
	if s.Pods != nil {
		p.TokenAttributes = tokenAttributes()
		p.Args = append(p.Args, s.Pods.args()...)
	}
	return kubeletv1.CredentialProviderConfig{
		TypeMeta:  metav1.TypeMeta{Kind: "CredentialProviderConfig", APIVersion: kubeletv1.SchemeGroupVersion.String()},
		Providers: []kubeletv1.CredentialProvider{p},
	}
}
