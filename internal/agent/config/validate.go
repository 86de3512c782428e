package config

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
)

// The shortest times that the published validation takes.
const (
	shortestPeriod = 15 * time.Second
	shortestStuck  = 30 * time.Second
)

// Error is a configuration that is refused.
type Error struct {
	File string
	errs field.ErrorList
}

// Error names the file and every error.
func (e *Error) Error() string {
	if len(e.errs) == 1 && e.errs[0].Field == "" {
		return e.File + ": " + e.errs[0].Detail
	}
	return fmt.Sprintf("%s: %v", e.File, e.errs.ToAggregate())
}

// List are the errors by field.
func (e *Error) List() field.ErrorList { return e.errs }

// validate returns the errors of a completed configuration.
func (c *NodeAgent) validate() field.ErrorList {
	errs := c.validateKind()
	if !slices.Contains([]string{"debug", "info", "error"}, c.LogLevel) {
		errs = append(errs, field.NotSupported(field.NewPath("logLevel"), c.LogLevel, []string{"debug", "info", "error"}))
	}
	if !slices.Contains([]string{"json", "text"}, c.LogFormat) {
		errs = append(errs, field.NotSupported(field.NewPath("logFormat"), c.LogFormat, []string{"json", "text"}))
	}
	if p := c.ClientConnection.Kubeconfig; p != "" {
		errs = append(errs, cleanPath(field.NewPath("clientConnection", "kubeconfig"), p)...)
	}
	errs = append(errs, c.validateServer()...)
	errs = append(errs, c.APIServer.validate(field.NewPath("apiServer"))...)
	p := field.NewPath("controllers")
	errs = append(errs, c.Controllers.OperatingSystemConfig.validate(p.Child("operatingSystemConfig"))...)
	errs = append(errs, c.Controllers.Token.validate(p.Child("token"))...)
	return append(errs, c.Controllers.SystemdUnitCheck.validate(p.Child("systemdUnitCheck"))...)
}

// UseKubeconfig has the KUBECONFIG of the environment count instead of the configuration's,
// as in the published agent; "" is none.
func (c *NodeAgent) UseKubeconfig(p string) error {
	if p == "" {
		return nil
	}
	if errs := cleanPath(field.NewPath("KUBECONFIG"), p); len(errs) > 0 {
		return &Error{"environment", errs}
	}
	c.ClientConnection.Kubeconfig = p
	return nil
}

func (c *NodeAgent) validateKind() field.ErrorList {
	var errs field.ErrorList
	if c.APIVersion != APIVersion {
		errs = append(errs, field.NotSupported(field.NewPath("apiVersion"), c.APIVersion, []string{APIVersion}))
	}
	if c.Kind != Kind {
		errs = append(errs, field.NotSupported(field.NewPath("kind"), c.Kind, []string{Kind}))
	}
	return errs
}

func (c *NodeAgent) validateServer() field.ErrorList {
	p := field.NewPath("server")
	return append(c.Server.HealthProbes.validate(p.Child("healthProbes")), c.Server.Metrics.validate(p.Child("metrics"))...)
}

func (a *Address) validate(p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, s := range validation.IsValidPortNum(a.Port) {
		errs = append(errs, field.Invalid(p.Child("port"), a.Port, s))
	}
	if net.ParseIP(a.BindAddress) == nil {
		errs = append(errs, field.Invalid(p.Child("bindAddress"), a.BindAddress, "must be an IP address"))
	}
	return errs
}

func (a APIServer) validate(p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if u, err := url.Parse(a.Server); err != nil || u.Scheme != "https" || u.Host == "" {
		errs = append(errs, field.Invalid(p.Child("server"), a.Server, "must be an https URL"))
	}
	return append(errs, cleanPath(p.Child("caFile"), a.CAFile)...)
}

func (c *OperatingSystemConfig) validate(p *field.Path) field.ErrorList {
	errs := atLeast(p.Child("syncPeriod"), c.SyncPeriod, shortestPeriod)
	errs = append(errs, objectName(p.Child("secretName"), c.SecretName)...)
	if c.KubernetesVersion == "" {
		return append(errs, field.Required(p.Child("kubernetesVersion"), ""))
	}
	if _, err := version.ParseSemantic(c.KubernetesVersion); err != nil {
		errs = append(errs, field.Invalid(p.Child("kubernetesVersion"), c.KubernetesVersion, "must be a semantic version"))
	}
	return errs
}

func (c *Token) validate(p *field.Path) field.ErrorList {
	errs := atLeast(p.Child("syncPeriod"), c.SyncPeriod, shortestPeriod)
	seen := map[string]bool{}
	for i, s := range c.SyncConfigs {
		at := p.Child("syncConfigs").Index(i)
		errs = append(errs, objectName(at.Child("secretName"), s.SecretName)...)
		errs = append(errs, cleanPath(at.Child("path"), s.Path)...)
		if seen[s.Path] {
			errs = append(errs, field.Duplicate(at.Child("path"), s.Path))
		}
		seen[s.Path] = true
	}
	return errs
}

func (c *SystemdUnitCheck) validate(p *field.Path) field.ErrorList {
	return append(atLeast(p.Child("syncPeriod"), c.SyncPeriod, shortestPeriod),
		atLeast(p.Child("stuckThreshold"), c.StuckThreshold, shortestStuck)...)
}

func atLeast(p *field.Path, d *meta.Duration, least time.Duration) field.ErrorList {
	if d.Duration >= least {
		return nil
	}
	return field.ErrorList{field.Invalid(p, d.Duration.String(), "must be at least "+least.String())}
}

func objectName(p *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	var errs field.ErrorList
	for _, s := range validation.IsDNS1123Subdomain(name) {
		errs = append(errs, field.Invalid(p, name, s))
	}
	return errs
}

// cleanPath refuses what is no path of a file, or one that leads into the kernel's
// own trees.
func cleanPath(p *field.Path, file string) field.ErrorList {
	kernel := slices.ContainsFunc([]string{"/proc/", "/sys/", "/dev/"}, func(dir string) bool { return strings.HasPrefix(file, dir) })
	switch {
	case file == "":
		return field.ErrorList{field.Required(p, "")}
	case !path.IsAbs(file), path.Clean(file) != file, file == "/", kernel:
		return field.ErrorList{field.Invalid(p, file, "must be the absolute and clean path of a file, not in /proc, /sys or /dev")}
	}
	return nil
}
