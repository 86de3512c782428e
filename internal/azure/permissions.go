package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/berth-dev/berth/internal/component"
)

// Scope is where a role is given.
type Scope string

// The scopes.
const (
	ClusterScope Scope = "the AKS cluster"
	GroupScope   Scope = "the resource group of the machine"
)

// Permission is a role that an identity needs, and what it does by it. The table of them
// is docs/azure-permissions.md, and what preflight checks.
type Permission struct {
	// Operator: who registers machines needs it; else the machine's own identity.
	Operator bool
	Role     string
	Scope    Scope
	// Actions are what of the role is used.
	Actions []string
	// Reason is for what, Needed when.
	Reason, Needed string
	// Later: not for the join itself.
	Later bool
	// applies says whether a registration needs it.
	applies func(*component.ArcRegistration) bool
}

// Permissions are all that berth needs of Azure.
func Permissions() []Permission {
	assigns := func(r *component.ArcRegistration) bool { return r.ClusterID != "" }
	always := func(*component.ArcRegistration) bool { return true }
	return []Permission{
		{Role: UserRole, Scope: ClusterScope, Actions: []string{"Microsoft.ContainerService/managedClusters/listClusterUserCredential/action"},
			Reason: "to read where the API server is, and its CA", Needed: "with `cluster.resourceId` and no `cluster.server`"},
		{Operator: true, Role: OnboardingRole, Scope: GroupScope, Actions: []string{"Microsoft.HybridCompute/machines/read", "Microsoft.HybridCompute/machines/write"},
			Reason: "to look for the machine, and to register it", Needed: "always", applies: always},
		{Operator: true, Role: MachineAdministratorRole, Scope: GroupScope, Actions: []string{"Microsoft.HybridCompute/machines/delete"}, Later: true,
			Reason: "to delete the machine: `berth leave`, and a join that was cut off", Needed: "to undo it", applies: always},
		{Operator: true, Role: AssignerRole, Scope: ClusterScope, Actions: []string{
			"Microsoft.Authorization/roleAssignments/read", "Microsoft.Authorization/roleAssignments/write", "Microsoft.Authorization/roleAssignments/delete"},
			Reason: "to give the machine's identity " + UserRole + ", and to take it back", Needed: "with `assignRole`", applies: assigns},
	}
}

// Applies says whether the operator needs it for a registration.
func (p *Permission) Applies(r *component.ArcRegistration) bool {
	return p.Operator && r != nil && p.applies(r)
}

// At is the resource id of the scope for a registration.
func (p *Permission) At(r *component.ArcRegistration) string {
	if p.Scope == ClusterScope {
		return r.ClusterID
	}
	return "/subscriptions/" + r.SubscriptionID + "/resourceGroups/" + r.ResourceGroup
}

// Missing are the actions that are not allowed.
func (p *Permission) Missing(all []Grant) (out []string) {
	for _, action := range p.Actions {
		allowed := false
		for _, g := range all {
			allowed = allowed || g.allows(action)
		}
		if !allowed {
			out = append(out, action)
		}
	}
	return out
}

// Grant is what a role allows, as patterns: * is any text. What one role takes out of
// itself another may allow.
type Grant struct {
	Actions    []string `json:"actions"`
	NotActions []string `json:"notActions"`
}

func (g Grant) allows(action string) bool {
	return anyMatches(g.Actions, action) && !anyMatches(g.NotActions, action)
}

func anyMatches(patterns []string, action string) bool {
	for _, p := range patterns {
		if matches(strings.ToLower(p), strings.ToLower(action)) {
			return true
		}
	}
	return false
}

// matches says whether a text is of a pattern.
func matches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, last)
}

// Granted is what the identity may do in a scope: its own word, which takes no right
// besides being known there.
//
// Source: learn.microsoft.com/rest/api/authorization/permissions.
func (m *Manager) Granted(ctx context.Context, scope string) ([]Grant, error) {
	during := "ask Azure what the identity may do in " + scope
	a, err := m.call(ctx, http.MethodGet, plain(scope)+"/providers/Microsoft.Authorization/permissions", assignmentVersion, nil, commonPatience)
	if err == nil && a.status != http.StatusOK {
		err = a.refusal()
	}
	if err != nil {
		return nil, failed(during, m.remedy(err), err)
	}
	all, err := grantsOf(a.body)
	if err != nil {
		return nil, failed(during, "Try again in some minutes.", err)
	}
	return all, nil
}

// grantsOf reads the list. One that goes on elsewhere is not taken for the whole.
func grantsOf(body []byte) ([]Grant, error) {
	var said struct {
		Value []Grant `json:"value"`
		Next  string  `json:"nextLink"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return nil, fmt.Errorf("the answer can't be read: %w", err)
	}
	if said.Value == nil {
		return nil, errors.New("the answer can't be read: it has no list")
	}
	if said.Next != "" {
		return nil, errors.New("the list is longer than one answer")
	}
	return said.Value, nil
}
