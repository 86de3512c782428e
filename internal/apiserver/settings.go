package apiserver

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// KubeletSettings are what a cluster tells its kubelets. What is empty it does not tell.
type KubeletSettings struct {
	// DNS are the addresses of its name servers, Domain that of its services.
	DNS    []string
	Domain string
	// CgroupDriver is systemd or cgroupfs.
	CgroupDriver string
}

const systemNamespace = "kube-system"

// KubeletSettings asks the cluster: first the ConfigMap kubelet-config, which kubeadm
// makes and lets nodes and their bootstrap tokens read, then, where it names no name
// server, the Service kube-dns, which nodes may read. What is not there, or not for
// this caller, is not told.
func (c *Client) KubeletSettings(ctx context.Context) (KubeletSettings, error) {
	m := &core.ConfigMap{}
	if err := c.told(ctx, "configmaps", "kubelet-config", m); err != nil {
		return KubeletSettings{}, err
	}
	s := ParseKubeletSettings([]byte(m.Data["kubelet"]))
	if len(s.DNS) > 0 {
		return s, nil
	}
	dns := &core.Service{}
	if err := c.told(ctx, "services", "kube-dns", dns); err != nil {
		return s, err
	}
	s.DNS = addresses(dns.Spec.ClusterIPs)
	return s, nil
}

// told reads an object of the cluster's own, if the cluster has it and shows it.
func (c *Client) told(ctx context.Context, resource, name string, into runtime.Object) error {
	err := c.short(ctx, func(ctx context.Context) error {
		return c.core.Get().Namespace(systemNamespace).Resource(resource).Name(name).MaxRetries(0).Do(ctx).Into(into)
	})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s %s in %s: %w", resource, name, systemNamespace, err)
	}
	return nil
}

// ParseKubeletSettings reads them out of a KubeletConfiguration, as YAML or JSON. What no
// kubelet would take is not told.
func ParseKubeletSettings(text []byte) KubeletSettings {
	var said struct {
		ClusterDNS    []string `json:"clusterDNS"`
		ClusterDomain string   `json:"clusterDomain"`
		CgroupDriver  string   `json:"cgroupDriver"`
	}
	if err := yaml.Unmarshal(text, &said); err != nil {
		return KubeletSettings{}
	}
	s := KubeletSettings{DNS: addresses(said.ClusterDNS)}
	if len(validation.IsDNS1123Subdomain(said.ClusterDomain)) == 0 {
		s.Domain = said.ClusterDomain
	}
	if slices.Contains([]string{"systemd", "cgroupfs"}, said.CgroupDriver) {
		s.CgroupDriver = said.CgroupDriver
	}
	return s
}

// addresses are those of a list that are some; a Service without an address has "None".
func addresses(texts []string) []string {
	var out []string
	for _, t := range texts {
		if a, err := netip.ParseAddr(t); err == nil && a.Zone() == "" {
			out = append(out, a.String())
		}
	}
	return out
}
