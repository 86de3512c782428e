package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/desired"
)

// AzureQuestion is what an identity may do in a scope, asked of a resource manager.
type AzureQuestion struct {
	Who            *desired.AzureIdentity
	Via            *desired.Egress
	Manager, Scope string
	// CAFiles are trusted on the way besides.
	CAFiles []string
}

const permissionsPage = "docs/azure-permissions.md"

// checkOperator asks for each permission of who registers the machine.
func checkOperator(ctx context.Context, v *visit) *finding {
	r := v.References.Arc
	if r == nil || v.Granted == nil {
		return okf("nobody registers the machine with Azure Arc")
	}
	if v.settled() {
		return okf("the machine is a node already: nobody is asked")
	}
	f := &finding{field: "identity.arc.registration"}
	asked := map[string][]azure.Grant{}
	for _, p := range azure.Permissions() {
		if !p.Applies(r) {
			continue
		}
		scope := p.At(r)
		all, known := asked[scope]
		if !known {
			var err error
			if all, err = v.Granted(ctx, AzureQuestion{Who: r.By, Via: r.Via, Manager: r.Manager, Scope: scope, CAFiles: r.CAFiles}); err != nil {
				f.unknown("", "what the identity may do in %s: %v", scope, err)
				continue
			}
			asked[scope] = all
		}
		f.permission(&p, scope, all)
	}
	return f
}

// permission checks one row of the table. What is needed later alone is a warning.
func (f *finding) permission(p *azure.Permission, scope string, all []azure.Grant) {
	missing := p.Missing(all)
	remedy := "give it the role " + p.Role + " on " + scope + " (" + permissionsPage + ")"
	switch {
	case len(missing) == 0:
		f.ok("%s: as %s", scope, p.Role)
	case p.Later:
		f.warn(remedy, "%s: %s is not allowed, %s", scope, strings.Join(missing, ", "), p.Reason)
	default:
		f.fail(remedy, "%s: %s is not allowed, %s", scope, strings.Join(missing, ", "), p.Reason)
	}
}

// checkMachineRole asks for the permissions of the machine's own identity.
func checkMachineRole(ctx context.Context, v *visit) *finding {
	a := v.References.Azure
	switch {
	case a == nil || v.Granted == nil:
		return okf("Azure is not asked how the cluster is reached")
	case v.settled():
		return okf("the machine is a node already: nobody is asked")
	case v.givesRole(a):
		return okf("the machine's identity is given its role when it joins")
	case v.hasNone(a.Identity):
		return unknownf("give it the role "+azure.UserRole+" on "+a.ResourceID+" when it is there, or set identity.arc.registration.assignRole ("+permissionsPage+")", "%v", errUnregistered)
	}
	f := &finding{field: "identity"}
	all, err := v.Granted(ctx, AzureQuestion{Who: a.Identity, Via: a.Via, Manager: a.Manager, Scope: a.ResourceID, CAFiles: a.CAFiles})
	if err != nil {
		return f.unknown("", "what the machine's identity may do in %s: %v", a.ResourceID, err)
	}
	for _, p := range slices.DeleteFunc(azure.Permissions(), func(p azure.Permission) bool { return p.Operator }) {
		f.permission(&p, a.ResourceID, all)
	}
	return f
}

// givesRole says whether the join gives the machine's identity the role on the cluster.
func (v *visit) givesRole(a *component.AzureCluster) bool {
	r := v.References.Arc
	return r != nil && azure.SameResource(r.ClusterID, a.ResourceID)
}

func (v *visit) settled() bool { return v.Settled != nil && v.Settled() }
