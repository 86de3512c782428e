package aks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/oci"
)

// images are those that came to the machine in a bundle: pods find them without a
// registry.
func (t *translation) images() error {
	for _, i := range t.facts.Images {
		if i.Reference != t.sandbox && i.Reference != t.driver {
			t.state.Add(imageOf(i))
		}
	}
	if i := t.kubeProxy(); i != nil && t.joins() && !t.hasImage(i.Reference) {
		t.add("kube_proxy_url", i)
	}
	return nil
}

// kubeProxy is the image of the cluster's own kube-proxy, so that its pod need not wait
// for it; nil where none is named. The pod pulls it, too: the node does without.
func (t *translation) kubeProxy() *desired.Image {
	ref, err := oci.ParseImage(t.cfg.GetKubeProxyUrl())
	if err != nil {
		return nil
	}
	return &desired.Image{Base: afterRuntime(), Reference: ref.Pulled(), Source: t.clusterImage(ref), Optional: true}
}

// hasImage says whether an image is part of the state without it.
func (t *translation) hasImage(name string) bool {
	return name == t.sandbox || slices.ContainsFunc(t.facts.Images, func(b component.BundledImage) bool { return b.Reference == name })
}

func imageOf(i component.BundledImage) *desired.Image {
	return &desired.Image{Base: afterRuntime(), Reference: i.Reference, Digest: i.Digest}
}

func afterRuntime() desired.Base {
	return desired.Base{After: []desired.ID{desired.UnitID(containerd.Unit)}}
}

// sandboxImage: in a cluster without a way out the image of every pod's sandbox is
// there, and stays, before kubelet starts. containerd itself would pull it without
// a login.
func (t *translation) sandboxImage() error {
	image := t.cfg.GetKubeBinaryConfig().GetPodInfraContainerImageUrl()
	if t.cfg.GetBootstrapProfileContainerRegistryServer() == "" || image == "" {
		return nil
	}
	ref, err := oci.ParseImage(image)
	if err != nil {
		return fmt.Errorf("kube_binary_config.pod_infra_container_image_url: %w", err)
	}
	i := &desired.Image{Base: afterRuntime(), Reference: ref.Pulled(), Source: t.clusterImage(ref), Pinned: true}
	t.sandbox = i.Reference
	for _, b := range t.facts.Images {
		if b.Reference == i.Reference {
			i.Digest, i.Source = b.Digest, ""
		}
	}
	t.node = append(t.node, t.add("kube_binary_config.pod_infra_container_image_url", i)...)
	return nil
}

// clusterImage is where the cluster's own registry, if it has one, has an image.
func (t *translation) clusterImage(ref oci.Reference) string {
	if ref.Registry != microsoftRegistry {
		return oci.Scheme + ref.Pulled()
	}
	server := strings.TrimRight(t.cfg.GetBootstrapProfileContainerRegistryServer(), "/")
	if server == "" {
		return oci.Scheme + ref.Pulled()
	}
	return oci.Scheme + server + strings.TrimPrefix(ref.Pulled(), microsoftRegistry)
}
