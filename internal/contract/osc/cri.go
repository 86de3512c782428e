package osc

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/operatingsystemconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/desired"
)

// cri configures containerd, without asking it: it may not run, or not be there
// yet.
func (t *translation) cri() {
	c := t.doc.Config.Spec.CRIConfig
	if c == nil {
		return
	}
	own := t.fileAt(containerd.ConfigFile)
	changed, err := t.changes(c, own).Apply()
	if err != nil {
		t.errs = append(t.errs, invalid(criPath, err.Error()))
		return
	}
	if own != nil && slices.ContainsFunc(changed.Resources, isBlock) {
		t.errs = append(t.errs, invalid(criPath, fmt.Sprintf("%s of the document (%s) does not import %s/*.toml, where this would go", own.Path, own.Field, containerd.DropInDir)))
		return
	}
	if c.Containerd != nil {
		t.registries(c.Containerd.Registries)
	}
	t.accountContainerd(changed)
	for _, r := range changed.Resources {
		if at, ok := r.(*desired.File); !ok || t.fileAt(at.Path) == nil {
			t.add(criPath, r)
		}
	}
	t.restarts(changed.Triggers)
}

// changes are what the document wants of a configuration: its own, or the one of
// the machine.
func (t *translation) changes(c *v1alpha1.CRIConfig, own *desired.File) containerd.Changes {
	out := containerd.Changes{Version: t.facts.ContainerdVersion, Existing: t.facts.ContainerdConfig, PathDropIn: t.facts.ContainerdFiles[containerd.PathDropIn]}
	if t.brings(component.ContainerdPaths...) {
		out.Version = "" // nobody knows it before the program is there
	}
	if own != nil {
		out.Existing = string(own.Content.Data())
	}
	if d := c.CgroupDriver; d != nil {
		systemd := *d == v1alpha1.CgroupDriverSystemd
		out.SystemdCgroup = &systemd
	}
	if c.Containerd != nil {
		out.SandboxImage, out.Plugins = c.Containerd.SandboxImage, pluginChanges(c.Containerd.Plugins)
	}
	return out
}

// brings says whether one of the paths is a file of the document itself.
func (t *translation) brings(paths ...string) bool {
	return slices.ContainsFunc(t.state.Resources, func(r desired.Resource) bool {
		return slices.ContainsFunc(r.FilePaths(), func(p string) bool { return slices.Contains(paths, p) })
	})
}

func isBlock(r desired.Resource) bool {
	_, ok := r.(*desired.Block)
	return ok
}

// fileAt is the file that the document itself has at a path, or nil.
func (t *translation) fileAt(p string) *desired.File {
	for _, r := range t.state.Resources {
		if f, ok := r.(*desired.File); ok && f.Path == p {
			return f
		}
	}
	return nil
}

func pluginChanges(all []v1alpha1.PluginConfig) []containerd.PluginChange {
	var out []containerd.PluginChange
	for i := range all {
		values, _ := pluginValues(&all[i]) // validation has read them
		out = append(out, containerd.PluginChange{Path: all[i].Path, Remove: removes(&all[i]), Values: values})
	}
	return out
}

// pluginValues are the members that a plugin change sets, as TOML has them.
func pluginValues(p *v1alpha1.PluginConfig) (map[string]any, error) {
	if len(p.Values) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(p.Values))
	d.UseNumber()
	var values map[string]any
	if err := d.Decode(&values); err != nil {
		return nil, errors.New("expected an object: a plugin's settings have names")
	}
	out, err := tomlOf(values)
	if err != nil {
		return nil, err
	}
	return out.(map[string]any), nil
}

// tomlOf makes of JSON what TOML can say.
func tomlOf(v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, errors.New("containerd's configuration has no null")
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		return v.Float64()
	case map[string]any:
		out := map[string]any{}
		for name, one := range v {
			inner, err := tomlOf(one)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			out[name] = inner
		}
		return out, nil
	case []any:
		out := []any{}
		for i, one := range v {
			inner, err := tomlOf(one)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			out = append(out, inner)
		}
		return out, nil
	}
	return v, nil
}

// registries writes for each one from where its images come.
func (t *translation) registries(all []v1alpha1.RegistryConfig) {
	for _, r := range locate(registriesPath, all) {
		c := containerd.Registry{Name: r.of.Upstream}
		if r.of.Server != nil {
			c.Server = *r.of.Server
		}
		for _, h := range r.of.Hosts {
			c.Hosts = append(c.Hosts, registryHost(h))
		}
		f, err := c.File(t.facts.ContainerdFiles[containerd.HostsFile(c.Name)])
		if err != nil {
			t.errs = append(t.errs, invalid(r.at, err.Error()))
			continue
		}
		t.add(r.at, f)
		if p := r.of.ReadinessProbe; p != nil && *p {
			t.partial(r.at.Child("readinessProbe"), "nobody waits until "+cmp.Or(hostNames(r.of), "it")+" answers: who pulls asks the next host, or again")
		}
	}
}

func registryHost(h v1alpha1.RegistryHost) containerd.RegistryHost {
	out := containerd.RegistryHost{URL: h.URL, CAs: h.CACerts, OverridePath: h.OverridePath != nil && *h.OverridePath}
	for _, c := range h.Capabilities {
		out.Capabilities = append(out.Capabilities, string(c))
	}
	if len(out.Capabilities) == 0 {
		out.Capabilities = []string{string(v1alpha1.CapabilityPull), string(v1alpha1.CapabilityResolve)}
	}
	return out
}

// restarts has containerd run with the files, whether or not the document speaks
// of its unit.
func (t *translation) restarts(triggers []string) {
	u := t.unit(containerd.Unit)
	if u == nil {
		u = &desired.Unit{Name: containerd.Unit, Activation: desired.Started}
		t.add(criPath, u)
	}
	u.Mentioned = false // a drop-in of it comes with the configuration
	if u.Activation != desired.Stopped {
		u.Triggers = append(u.Triggers, triggers...)
		slices.Sort(u.Triggers)
		u.Triggers = slices.Compact(u.Triggers)
	}
}

func (t *translation) accountContainerd(c *containerd.Changed) {
	for _, i := range c.Kept {
		t.partial(pluginsPath.Index(i), "what "+containerd.ConfigFile+" says there stays: it is another's")
	}
	if c.Mirrors {
		t.partial(registriesField(t.doc), containerd.ConfigFile+" names mirrors itself: containerd then reads no hosts.toml")
	}
}

// registriesField is the field that is of no use where hosts.toml is not read.
func registriesField(d *Document) *field.Path {
	if c := d.Config.Spec.CRIConfig.Containerd; c != nil && len(c.Registries) > 0 {
		return registriesPath
	}
	return criPath
}
