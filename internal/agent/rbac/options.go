package rbac

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The published names, and what the objects are called.
const (
	Group          = "gardener.cloud:node-agents"
	BootstrapGroup = "system:bootstrappers"
	Name           = "berth-node-agent"

	// userPrefix and a machine's name are the user that its agent is.
	userPrefix  = "gardener.cloud:node-agent:machine:"
	leasePrefix = "gardener-node-agent-"
	namespace   = "kube-system"
)

// Options say for whom. The zero value lacks only the Secrets.
type Options struct {
	// Name is the objects' own: pools with groups of their own have each their set.
	Name string
	// Group is the organization in the agents' certificates.
	Group string
	// BootstrapGroup is that of the bootstrap tokens.
	BootstrapGroup string
	// Secrets hold what the machines become; the Leases with which agents take turns
	// are called like them.
	Secrets []string
	// Others are Secrets that agents read besides: tokens, and contents of files.
	Others []string
}

func (o *Options) complete() {
	set(&o.Name, Name)
	set(&o.Group, Group)
	set(&o.BootstrapGroup, BootstrapGroup)
	o.Secrets, o.Others = sorted(o.Secrets), sorted(o.Others)
}

func set(s *string, value string) {
	if *s == "" {
		*s = value
	}
}

func sorted(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// groupForm is what needs no quotes in an expression.
var groupForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9:._/@-]*$`)

func (o *Options) validate() field.ErrorList {
	errs := subdomain(field.NewPath("name"), o.Name)
	for _, g := range []struct{ name, value string }{{"group", o.Group}, {"bootstrap-group", o.BootstrapGroup}} {
		if !groupForm.MatchString(g.value) {
			errs = append(errs, field.Invalid(field.NewPath(g.name), g.value, "must be letters, digits and :._/@-"))
		}
	}
	if slices.Contains([]string{"system:authenticated", "system:unauthenticated", "system:serviceaccounts", "system:nodes", o.BootstrapGroup}, o.Group) {
		errs = append(errs, field.Invalid(field.NewPath("group"), o.Group, "is everybody's, or that of others: agents have one of their own"))
	}
	if len(o.Secrets) == 0 {
		errs = append(errs, field.Required(field.NewPath("secret"), "the Secret that the agents watch"))
	}
	for _, s := range o.Secrets {
		errs = append(errs, subdomain(field.NewPath("secret"), s)...)
	}
	for _, s := range o.Others {
		errs = append(errs, subdomain(field.NewPath("token-secret"), s)...)
	}
	return errs
}

func subdomain(at *field.Path, name string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Subdomain(name) {
		errs = append(errs, field.Invalid(at, name, problem))
	}
	return errs
}
