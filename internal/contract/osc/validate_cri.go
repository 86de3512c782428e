package osc

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/operatingsystemconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/oci"
)

func (v *validation) cri() {
	c := v.doc.Config.Spec.CRIConfig
	if c == nil {
		return
	}
	if c.Name != v1alpha1.CRINameContainerd {
		v.errs = append(v.errs, field.NotSupported(criPath.Child("name"), c.Name, []v1alpha1.CRIName{v1alpha1.CRINameContainerd}))
	}
	drivers := []v1alpha1.CgroupDriver{v1alpha1.CgroupDriverSystemd, v1alpha1.CgroupDriverCgroupfs}
	if d := c.CgroupDriver; d != nil && !slices.Contains(drivers, *d) {
		v.errs = append(v.errs, field.NotSupported(criPath.Child("cgroupDriver"), *d, drivers))
	}
	if c.Containerd == nil {
		return
	}
	if image := c.Containerd.SandboxImage; image != "" {
		if _, err := oci.ParseImage(image); err != nil {
			v.refuse(containerdPath.Child("sandboxImage"), "%v", err)
		}
	}
	v.registries(c.Containerd.Registries)
	for _, p := range locate(pluginsPath, c.Containerd.Plugins) {
		v.plugin(p)
	}
}

var (
	containerdPath = criPath.Child("containerd")
	pluginsPath    = containerdPath.Child("plugins")
	registriesPath = containerdPath.Child("registries")
)

func (v *validation) registries(all []v1alpha1.RegistryConfig) {
	seen := sets.New[string]()
	for _, r := range locate(registriesPath, all) {
		at := r.at.Child("upstream")
		switch {
		case !v.require(at, r.of.Upstream):
		case seen.Has(r.of.Upstream):
			v.errs = append(v.errs, field.Duplicate(at, r.of.Upstream))
		case r.of.Upstream != "_default" && !isRegistry(r.of.Upstream):
			v.refuse(at, "%q is neither _default nor a registry's host[:port] (the API's admission)", r.of.Upstream)
		}
		seen.Insert(r.of.Upstream)
		if r.of.Server != nil {
			v.webURL(r.at.Child("server"), *r.of.Server)
		}
		v.registryHosts(locate(r.at.Child("hosts"), r.of.Hosts))
	}
}

// registryHosts: containerd reads of each URL one table, so that only what is the same
// in all else may stand there again.
func (v *validation) registryHosts(all []located[v1alpha1.RegistryHost]) {
	first := map[string]containerd.RegistryHost{}
	for _, h := range all {
		v.registryHost(h)
		is := registryHost(*h.of)
		was, seen := first[is.URL]
		switch {
		case !seen:
			first[is.URL] = is
		case !was.Equal(is):
			v.errs = append(v.errs, field.Duplicate(h.at.Child("url"), is.URL))
		}
	}
}

// isRegistry says whether a text is what images may begin with.
func isRegistry(text string) bool {
	ref, err := oci.ParseImage(text + "/x/x")
	return err == nil && ref.Registry == text
}

func (v *validation) webURL(at *field.Path, text string) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		v.refuse(at, "it is no http or https URL of a host, with a path at most (the API's admission)")
	}
}

func (v *validation) registryHost(h located[v1alpha1.RegistryHost]) {
	v.webURL(h.at.Child("url"), h.of.URL)
	known := []v1alpha1.RegistryCapability{v1alpha1.CapabilityPull, v1alpha1.CapabilityResolve, v1alpha1.CapabilityPush}
	for i, c := range h.of.Capabilities {
		if !slices.Contains(known, c) {
			v.errs = append(v.errs, field.NotSupported(h.at.Child("capabilities").Index(i), c, known))
		}
	}
	for i, ca := range h.of.CACerts {
		if at := h.at.Child("caCerts").Index(i); v.require(at, ca) && !path.IsAbs(ca) {
			v.refuse(at, "%q is not absolute", ca)
		}
	}
}

func (v *validation) plugin(p located[v1alpha1.PluginConfig]) {
	ops := []v1alpha1.PluginPathOperation{v1alpha1.AddPluginPath, v1alpha1.RemovePluginPath}
	if p.of.Op != nil && !slices.Contains(ops, *p.of.Op) {
		v.errs = append(v.errs, field.NotSupported(p.at.Child("op"), *p.of.Op, ops))
	}
	if len(p.of.Path) == 0 || slices.Contains(p.of.Path, "") {
		v.errs = append(v.errs, field.Required(p.at.Child("path"), "the plugin's name and then the names of tables"))
	}
	values := p.at.Child("values")
	if removes(p.of) && len(p.of.Values) > 0 {
		v.refuse(values, "a removal has none (the API's admission)")
		return
	}
	if _, err := pluginValues(p.of); err != nil {
		v.refuse(values, "%v", err)
	}
}

func removes(p *v1alpha1.PluginConfig) bool {
	return p.Op != nil && *p.Op == v1alpha1.RemovePluginPath
}

// hostNames are the hosts of a registry in words.
func hostNames(r *v1alpha1.RegistryConfig) string {
	var out []string
	for _, h := range r.Hosts {
		out = append(out, h.URL)
	}
	return strings.Join(out, ", ")
}
