package azure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
)

// Secret tells who may have made what is in Azure, with the secret that is not kept; nil
// is nobody.
type Secret func() (*desired.AzureIdentity, error)

// Unregister takes back what berth made in Azure: first the roles, then the machine,
// then what the agent knows of it, and last the agent, where berth installed it. It does
// what it can and says what stayed.
func (s *Source) Unregister(ctx context.Context, secret Secret, say func(string)) (stayed []error) {
	stayed = optional(s.forgetInputs())
	m, err := s.made()
	if err != nil {
		return append(stayed, failed("read what berth made in Azure", damagedRemedy, err))
	}
	for _, n := range slices.Clone(m.Notes) {
		u := &unregistering{Source: s, made: m, note: n, say: say}
		u.run(ctx, secret)
		stayed = append(stayed, u.stayed...)
	}
	if m.Package != nil && len(m.Notes) == 0 { // what is in Azure yet may need it
		stayed = append(stayed, optional(s.withdrawPackage(ctx, m, say))...)
	}
	return stayed
}

// unregistering ends one note.
type unregistering struct {
	*Source
	made    *made
	note    *note
	manager *Manager
	say     func(string)
	stayed  []error
}

func (u *unregistering) run(ctx context.Context, secret Secret) {
	var err error
	if u.manager, err = u.managerOf(ctx, u.note, secret); err != nil {
		for _, id := range u.note.all() {
			u.keep(id, err)
		}
		return
	}
	defer u.manager.Close()
	for _, id := range slices.Clone(u.note.Assignments) {
		if err := u.manager.Unassign(ctx, id); err != nil {
			u.keep(id, err)
			continue
		}
		u.say("deleted the role assignment " + id)
		u.note.forget(id)
		u.save()
	}
	if u.note.Made {
		u.machine(ctx)
	}
}

// all are the resource ids of what may be in Azure.
func (n *note) all() []string {
	out := slices.Clone(n.Assignments)
	if n.Made {
		out = append(out, n.ID)
	}
	return out
}

func (u *unregistering) keep(id string, err error) {
	u.stayed = append(u.stayed, fmt.Errorf("%s is still in Azure (az resource delete --ids): %w", id, err))
}

func (u *unregistering) save() { u.stayed = append(u.stayed, optional(u.Source.save(u.made))...) }

// machine deletes the one that berth registered, and no other of its name.
func (u *unregistering) machine(ctx context.Context) {
	there, err := u.manager.Machine(ctx, u.note.ID)
	switch {
	case isCode(err, "ResourceGroupNotFound"): // and with it all that was in it
	case err != nil:
		u.keep(u.note.ID, err)
		return
	case there != nil && !u.note.is(there):
		u.say("left the machine " + u.note.ID + " alone: somebody else registered it")
		u.note.Made = false
		u.save()
		return
	case there != nil:
		if err := u.manager.DeleteMachine(ctx, u.note.ID); err != nil {
			u.keep(u.note.ID, err)
			return
		}
		u.say("deleted the machine " + u.note.ID)
	}
	if err := u.disconnect(ctx, u.note.ID); err != nil {
		u.stayed = append(u.stayed, fmt.Errorf("the agent of Azure Arc was not disconnected (azcmagent disconnect --force-local-only): %w", err))
		if p := u.made.Package; p != nil {
			p.Deleted = u.note.ID
		}
	}
	u.note.Made = false
	u.save()
}

func optional(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

func (s *Source) managerOf(ctx context.Context, n *note, secret Secret) (*Manager, error) {
	by := n.By
	if by.Kind == desired.AzureServicePrincipal && by.ClientSecretFile == "" && by.ClientSecretEnv == "" && by.ClientCertificateFile == "" {
		var err error
		if by, err = proven(by, secret); err != nil {
			return nil, err
		}
	}
	return s.Manager(ctx, by, n.Way.egress(), n.Manager)
}

var errNoSecret = errors.New("the secret of who made it stood in the document alone, and is not kept")

// proven is an application with its secret.
func proven(by *desired.AzureIdentity, secret Secret) (*desired.AzureIdentity, error) {
	if secret == nil {
		return nil, errNoSecret
	}
	who, err := secret()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errNoSecret, err)
	case who == nil || who.Kind != by.Kind || !strings.EqualFold(who.TenantID, by.TenantID) || !strings.EqualFold(who.ClientID, by.ClientID):
		return nil, fmt.Errorf("%w: the configuration names another identity than %s", errNoSecret, by.ClientID)
	}
	out := *by
	out.ClientSecret, out.ClientSecretFile, out.ClientSecretEnv, out.ClientCertificateFile = who.ClientSecret, who.ClientSecretFile, who.ClientSecretEnv, who.ClientCertificateFile
	return &out, nil
}
