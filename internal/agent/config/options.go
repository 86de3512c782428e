package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity"
	"github.com/berth-dev/berth/internal/paths"
)

// OptionsPath is where the agent's own options are; the file may be absent.
const OptionsPath = paths.SettingsDir + "/agent.yaml"

// Policy is what becomes of drift.
type Policy string

// The policies.
const (
	Repair Policy = "repair"
	Report Policy = "report"
	Ignore Policy = "ignore"
)

var policies = []Policy{Repair, Report, Ignore}

// Options are the agent's own.
type Options struct {
	Sources Sources `json:"sources"`
	Drift   Drift   `json:"drift"`
	// Trial takes back a change that breaks what ran.
	Trial *bool `json:"trial"`
	// Jitter is the longest time that a node waits before it takes a new document,
	// where no annotation of the Node says otherwise. Within it, each node has a time
	// of its own for each document.
	Jitter *meta.Duration `json:"jitter"`
	// MaxUnavailable is how many machines of the pool take a document at a time where
	// the Secret asks for one after another.
	MaxUnavailable int   `json:"maxUnavailable"`
	Lease          Lease `json:"lease"`
	// ForeignAgent is what becomes of another program that a document would put in this
	// agent's place.
	ForeignAgent ForeignAgent `json:"foreignAgent"`
	// UpdateWithin is how long the agent of a document has to prove itself before this
	// one comes back.
	UpdateWithin *meta.Duration `json:"updateWithin"`
	// RequireDigests fetches nothing of which nobody gives the digest, whatever documents say.
	RequireDigests bool `json:"requireDigests"`
	// Group is the organization in the agent's certificate: the group whose rights it
	// has.
	Group string `json:"group"`
}

// ForeignAgent is what becomes of an agent that is not berth.
type ForeignAgent string

// What becomes of it.
const (
	KeepOut ForeignAgent = "keepOut"
	Allow   ForeignAgent = "allow"
)

// Sources are where documents come from. Each is one owner of what it asks for.
type Sources struct {
	// Secret is that of the cluster, as published.
	Secret *bool `json:"secret"`
	// AKSNodeConfig is a file with an AKS document; "" for none.
	AKSNodeConfig string `json:"aksNodeConfig"`
	// NodeConfig is a file with a NodeConfig; "" for none. The Secret then holds none.
	NodeConfig string `json:"nodeConfig"`
	// OperatingSystemConfig is a file that takes the Secret's place; "" for none.
	OperatingSystemConfig string `json:"operatingSystemConfig"`
}

// Drift is what is done about what others change.
type Drift struct {
	// Policy is for what Paths do not name.
	Policy Policy `json:"policy"`
	// Paths are exceptions; the last that fits counts.
	Paths      []PathPolicy `json:"paths,omitempty"`
	StormGuard StormGuard   `json:"stormGuard"`
}

// PathPolicy is the policy for a file, or for a directory with all that is in it.
// A unit goes by its name.
type PathPolicy struct {
	Path   string `json:"path"`
	Policy Policy `json:"policy"`
}

// StormGuard ends a fight with another writer: what was repaired Repairs times
// within Within is only reported for the time of Pause.
type StormGuard struct {
	Repairs int            `json:"repairs"`
	Within  *meta.Duration `json:"within"`
	Pause   *meta.Duration `json:"pause"`
}

// Lease is the agent's heartbeat.
type Lease struct {
	Renew    *meta.Duration `json:"renew"`
	Duration *meta.Duration `json:"duration"`
}

// ReadOptions reads the options; without a file all have their defaults. It is as
// strict as it can be: the file is nobody else's.
func ReadOptions(h host.FS) (*Options, error) {
	text, err := h.ReadFile(OptionsPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the agent's options: %w", err)
	}
	return ParseOptions(OptionsPath, text)
}

// ParseOptions is ReadOptions of a text.
func ParseOptions(file string, text []byte) (*Options, error) {
	o := &Options{}
	if err := yaml.UnmarshalStrict(text, o); err != nil {
		return nil, unreadable(file, err)
	}
	o.complete()
	if errs := o.validate(); len(errs) > 0 {
		return nil, &Error{file, errs}
	}
	return o, nil
}

func (o *Options) complete() {
	if o.Sources.Secret == nil {
		yes := true
		o.Sources.Secret = &yes
	}
	if o.Drift.Policy == "" {
		o.Drift.Policy = Repair
	}
	if o.Trial == nil {
		yes := true
		o.Trial = &yes
	}
	if o.Group == "" {
		o.Group = identity.AgentsGroup
	}
	if o.MaxUnavailable == 0 {
		o.MaxUnavailable = 1
	}
	if o.Drift.StormGuard.Repairs == 0 {
		o.Drift.StormGuard.Repairs = 5
	}
	setPeriod(&o.Drift.StormGuard.Within, time.Minute)
	setPeriod(&o.Drift.StormGuard.Pause, 10*time.Minute)
	if o.ForeignAgent == "" {
		o.ForeignAgent = KeepOut
	}
	setPeriod(&o.UpdateWithin, 2*time.Minute)
	setPeriod(&o.Jitter, 5*time.Minute)
	setPeriod(&o.Lease.Renew, 40*time.Second)
	setPeriod(&o.Lease.Duration, 160*time.Second)
}

func (o *Options) validate() field.ErrorList {
	drift := field.NewPath("drift")
	errs := append(o.Sources.validate(field.NewPath("sources")), o.Drift.Policy.validate(drift.Child("policy"))...)
	for i, p := range o.Drift.Paths {
		at := drift.Child("paths").Index(i)
		errs = append(errs, p.Policy.validate(at.Child("policy"))...)
		if !isPathOrUnit(p.Path) {
			errs = append(errs, field.Invalid(at.Child("path"), p.Path, "must be an absolute and clean path, or the name of a unit"))
		}
	}
	guard := drift.Child("stormGuard")
	if o.Drift.StormGuard.Repairs < 1 {
		errs = append(errs, field.Invalid(guard.Child("repairs"), o.Drift.StormGuard.Repairs, "must be at least 1"))
	}
	errs = append(errs, atLeast(guard.Child("within"), o.Drift.StormGuard.Within, time.Second)...)
	errs = append(errs, atLeast(guard.Child("pause"), o.Drift.StormGuard.Pause, time.Second)...)
	if o.MaxUnavailable < 1 {
		errs = append(errs, field.Invalid(field.NewPath("maxUnavailable"), o.MaxUnavailable, "must be at least 1"))
	}
	if all := []ForeignAgent{KeepOut, Allow}; !slices.Contains(all, o.ForeignAgent) {
		errs = append(errs, field.NotSupported(field.NewPath("foreignAgent"), o.ForeignAgent, all))
	}
	errs = append(errs, atLeast(field.NewPath("updateWithin"), o.UpdateWithin, 15*time.Second)...)
	errs = append(errs, atLeast(field.NewPath("jitter"), o.Jitter, 0)...)
	errs = append(errs, atLeast(field.NewPath("lease", "renew"), o.Lease.Renew, 5*time.Second)...)
	return append(errs, atLeast(field.NewPath("lease", "duration"), o.Lease.Duration, 2*o.Lease.Renew.Duration)...)
}

func (s *Sources) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{"": true}
	for _, f := range []struct{ name, path string }{
		{"aksNodeConfig", s.AKSNodeConfig}, {"nodeConfig", s.NodeConfig}, {"operatingSystemConfig", s.OperatingSystemConfig},
	} {
		switch child := at.Child(f.name); {
		case f.path != "" && (!path.IsAbs(f.path) || path.Clean(f.path) != f.path):
			errs = append(errs, field.Invalid(child, f.path, "must be an absolute and clean path"))
		case f.name == "operatingSystemConfig" && f.path != "" && *s.Secret:
			errs = append(errs, field.Forbidden(child, "the Secret has the document of this kind: set secret to false, or leave this out"))
		case f.path != "" && seen[f.path]:
			errs = append(errs, field.Duplicate(child, f.path))
		}
		seen[f.path] = true
	}
	if !*s.Secret && len(seen) == 1 {
		errs = append(errs, field.Required(at, "without the Secret, a file must have the document"))
	}
	return errs
}

func isPathOrUnit(p string) bool {
	return path.IsAbs(p) && path.Clean(p) == p || p != "" && !strings.Contains(p, "/")
}

func (p Policy) validate(at *field.Path) field.ErrorList {
	if slices.Contains(policies, p) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, p, policies)}
}
