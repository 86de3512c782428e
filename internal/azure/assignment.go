package azure

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// userRoleID is that of UserRole, in all clouds.
//
// Source: learn.microsoft.com/azure/role-based-access-control/built-in-roles.
const userRoleID = "4abbcc35-e782-43d8-92c5-2d3f1bd2253f"

// AssignerRole is the least role with which roles are assigned.
const AssignerRole = "Role Based Access Control Administrator"

// Assignment gives a principal a role in a scope.
type Assignment struct {
	// Scope is a resource id, Role the name of a role and RoleID its GUID.
	Scope, Role, RoleID string
	// Principal is the object id of who is given it.
	Principal string
}

// UserAssignment lets a principal ask how a cluster is reached.
func UserAssignment(clusterID, principal string) Assignment {
	return Assignment{Scope: clusterID, Role: UserRole, RoleID: userRoleID, Principal: principal}
}

// assignments is the name space of the names below, a GUID of berth's own.
var assignments = uuid.MustParse("6d0a7b0e-5c1c-4a62-9c9e-9a0b3f5a3f61")

// ID is the resource id of the assignment. Its name comes of scope, principal and role,
// so that who makes it twice makes it once.
func (a Assignment) ID() string {
	text := strings.ToLower(strings.Join([]string{plain(a.Scope), a.Principal, a.RoleID}, "\n"))
	return plain(a.Scope) + "/providers/Microsoft.Authorization/roleAssignments/" + uuid.NewSHA1(assignments, []byte(text)).String()
}

// definition is the resource id of the role; the subscription is the scope's.
func (a Assignment) definition() string {
	const before = "/subscriptions/"
	parts := strings.SplitN(strings.TrimPrefix(a.Scope, "/"), "/", 3)
	if len(parts) < 2 {
		return ""
	}
	return before + parts[1] + "/providers/Microsoft.Authorization/roleDefinitions/" + a.RoleID
}

// Assigned says whether an assignment is there under its name.
func (m *Manager) Assigned(ctx context.Context, id string) (bool, error) {
	a, err := m.call(ctx, http.MethodGet, id, assignmentVersion, nil, commonPatience)
	switch {
	case err == nil && (a.gone() || isCode(a.refusal(), "ResourceGroupNotFound")):
		return false, nil
	case err == nil && a.status != http.StatusOK:
		err = a.refusal()
	}
	if err != nil {
		return false, failed("look for the role assignment "+id, m.assignerRemedy(err), err)
	}
	return true, nil
}

// Assign gives the role. made is false where the principal has it already by an
// assignment of another name, which is somebody else's. Azure may not find a principal
// that it has only just made: it is asked again for a while.
func (m *Manager) Assign(ctx context.Context, a Assignment) (made bool, err error) {
	body := map[string]any{"properties": map[string]string{
		"principalId": a.Principal, "roleDefinitionId": a.definition(),
		// Without it Azure looks for a principal that it has only just made, and may not
		// find it yet.
		"principalType": "ServicePrincipal",
	}}
	got, err := m.persist(ctx, replication, func(ctx context.Context) (answer, error) {
		return m.call(ctx, http.MethodPut, a.ID(), assignmentVersion, body, commonPatience)
	}, func(got answer) bool {
		return got.status != http.StatusCreated && isCode(got.refusal(), "PrincipalNotFound")
	})
	if err == nil && got.status != http.StatusOK && got.status != http.StatusCreated {
		err = got.refusal()
	}
	switch {
	case isCode(err, "RoleAssignmentExists"): // also ours, where the answer to an earlier request was lost
		return m.Assigned(ctx, a.ID())
	case err != nil:
		return false, failed("give "+a.Principal+" the role "+a.Role+" on "+a.Scope, m.assignerRemedy(err), err)
	}
	return true, nil
}

// Unassign deletes an assignment; one that is not there is as good.
func (m *Manager) Unassign(ctx context.Context, id string) error {
	a, err := m.call(ctx, http.MethodDelete, id, assignmentVersion, nil, commonPatience)
	if err == nil && !a.deleted() {
		err = a.refusal()
	}
	if err != nil {
		return failed("delete the role assignment "+id, m.assignerRemedy(err), err)
	}
	return nil
}

func (m *Manager) assignerRemedy(err error) string {
	if isStatus(err, http.StatusForbidden) {
		return "Give the identity that registers machines (" + string(m.identity.Kind) + ") the role " + AssignerRole + " on the cluster, or have somebody assign " + UserRole + " and leave identity.arc.registration.assignRole out."
	}
	return m.remedy(err)
}
