package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// OnboardingRole and MachineAdministratorRole are the least roles with which a machine is
// registered with Azure Arc, and taken out of it.
const (
	OnboardingRole           = "Azure Connected Machine Onboarding"
	MachineAdministratorRole = "Azure Connected Machine Resource Administrator"
)

// MachineID is the resource id of a machine of Azure Arc.
func MachineID(subscription, group, name string) string {
	return "/subscriptions/" + subscription + "/resourceGroups/" + group + "/providers/Microsoft.HybridCompute/machines/" + name
}

// Machine is a machine as Azure Arc knows it.
type Machine struct {
	ID string
	// PrincipalID is the object id of its identity.
	PrincipalID string
	// Status is Connected, Disconnected, Expired or Error.
	Status string
	Tags   map[string]string
}

// Machine reads a machine of Azure Arc; nil where there is none.
func (m *Manager) Machine(ctx context.Context, id string) (*Machine, error) {
	during := "look for the machine " + id + " in Azure Arc"
	a, err := m.call(ctx, http.MethodGet, id, machineVersion, nil, commonPatience)
	if err == nil && a.gone() {
		return nil, nil
	}
	if err == nil && a.status != http.StatusOK {
		err = a.refusal()
	}
	if err != nil {
		return nil, failed(during, m.machineRemedy(err, OnboardingRole), err)
	}
	var said struct {
		ID       string                       `json:"id"`
		Identity struct{ PrincipalID string } `json:"identity"`
		Props    struct{ Status string }      `json:"properties"`
		Tags     map[string]string            `json:"tags"`
	}
	if err := json.Unmarshal(a.body, &said); err != nil {
		return nil, failed(during, "Try again in some minutes.", fmt.Errorf("the answer can't be read: %w", err))
	}
	return &Machine{ID: said.ID, PrincipalID: said.Identity.PrincipalID, Status: said.Props.Status, Tags: said.Tags}, nil
}

// gone: the resource is not there, while what holds it is.
//
// Source: learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors;
// HCRP404 is Microsoft.HybridCompute's own word.
func (a answer) gone() bool {
	e := &StatusError{}
	if a.status != http.StatusNotFound || !errors.As(a.refusal(), &e) {
		return false
	}
	for _, code := range []string{"ResourceNotFound", "NotFound", "HCRP404", "RoleAssignmentNotFound"} {
		if strings.EqualFold(e.Code, code) {
			return true
		}
	}
	return false
}

// deleted: the resource is not there any more; it went also with its group.
func (a answer) deleted() bool {
	return a.status == http.StatusOK || a.status == http.StatusNoContent || a.gone() || isCode(a.refusal(), "ResourceGroupNotFound")
}

// DeleteMachine deletes a machine of Azure Arc; one that is not there is as good.
func (m *Manager) DeleteMachine(ctx context.Context, id string) error {
	a, err := m.call(ctx, http.MethodDelete, id, machineVersion, nil, commonPatience)
	if err == nil && a.status == http.StatusAccepted {
		if a, err = m.awaitDone(ctx, a); err == nil && a.status == http.StatusNotFound {
			return nil // the operation went with the machine
		}
	}
	if err == nil && !a.deleted() {
		err = a.refusal()
	}
	if err != nil {
		return failed("delete the machine "+id+" in Azure Arc", m.machineRemedy(err, MachineAdministratorRole), err)
	}
	return nil
}

func (m *Manager) machineRemedy(err error, role string) string {
	switch {
	case isStatus(err, http.StatusForbidden):
		return "Give the identity that registers machines (" + string(m.identity.Kind) + ") the role " + role + " on the resource group."
	case isStatus(err, http.StatusNotFound):
		return "Check identity.arc.resourceGroup and subscriptionId: no such resource group is there, or it is in another tenant."
	}
	return m.remedy(err)
}

// remedy is what to do about answers that mean the same for every resource.
func (m *Manager) remedy(err error) string {
	if e, ok := errors.AsType[*StatusError](err); ok && serverBusy(e.Status) {
		return "Azure Resource Manager is busy: try again in some minutes."
	}
	if Silent(err) {
		return "Check that Azure Resource Manager (" + m.address + ") is reachable from this machine: DNS, firewall, proxy; then try again."
	}
	if isStatus(err, http.StatusUnauthorized) {
		return "Check that the identity is of the subscription's tenant."
	}
	return "Try again in some minutes."
}

// SameResource says whether two resource ids are of one resource: case means nothing in
// them.
func SameResource(a, b string) bool { return strings.EqualFold(plain(a), plain(b)) }

func plain(id string) string {
	if text, err := url.PathUnescape(id); err == nil {
		id = text
	}
	return strings.TrimSuffix(id, "/")
}
