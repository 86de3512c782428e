package azure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/desired"
)

// Register registers the machine with Azure Arc where it is not yet, and lets its
// identity ask how the cluster is reached where the document says so. A machine that is
// registered already is taken as it is. settled: the machine is a node of the cluster,
// so that its role is there and nobody is asked. A run that was cut off is continued.
func (s *Source) Register(ctx context.Context, r *component.ArcRegistration, settled bool, say func(string)) error {
	agent, err := s.agent(ctx)
	if err != nil {
		return err
	}
	id := MachineID(r.SubscriptionID, r.ResourceGroup, r.Name)
	there := agent.id()
	switch {
	case there != "" && !SameResource(there, id):
		return failed("register the machine with Azure Arc", "Name it so in identity.arc (machineName, resourceGroup, subscriptionId), or disconnect it: azcmagent disconnect.",
			fmt.Errorf("the machine is registered already, as %s", there))
	case there != "" && (settled || r.ClusterID == ""):
		return nil
	case r.By == nil && there == "":
		return failed("register the machine with Azure Arc", "Connect it (azcmagent connect), or say in identity.arc.registration who does.", errors.New("the machine is not connected to Azure Arc"))
	case r.By == nil:
		return nil
	}
	g := &registering{Source: s.by(r.Via), r: r, id: id, agent: agent, say: say}
	return g.run(ctx, there != "")
}

// registering is one run.
type registering struct {
	*Source
	r       *component.ArcRegistration
	id      string
	agent   *arcAgent
	manager *Manager
	made    *made
	say     func(string)
}

func (g *registering) run(ctx context.Context, connected bool) (err error) {
	if g.manager, err = g.Manager(ctx, g.r.By, g.r.Via, g.r.Manager); err != nil {
		return err
	}
	defer g.manager.Close()
	if g.made, err = g.Source.made(); err != nil {
		return failed("read what berth made in Azure", "Look at the file; berth leave ends what it tells of.", err)
	}
	if !connected {
		if err := g.connect(ctx); err != nil {
			return err
		}
		g.say("registered the machine with Azure Arc as " + g.id)
	}
	if g.r.ClusterID == "" {
		return nil
	}
	return g.assign(ctx)
}

// connect registers the machine. What stands there under its name is deleted first
// where berth put it there in a run that was cut off: the agent knows nothing of it.
func (g *registering) connect(ctx context.Context) error {
	there, err := g.manager.Machine(ctx, g.id)
	switch {
	case err != nil:
		return err
	case there != nil && !SameResource(g.made.Machine, g.id):
		return connectFailed(g.id, errTaken)
	case there != nil:
		if err := g.manager.DeleteMachine(ctx, g.id); err != nil {
			return err
		}
	}
	g.made.Machine = g.id
	g.made.by(g.r)
	if err := g.save(g.made); err != nil {
		return err
	}
	inputs, err := g.inputs()
	if err != nil {
		return err
	}
	if err := g.Source.connect(ctx, g.agent.program, inputs); err != nil {
		return connectFailed(g.id, errors.Join(err, g.unmade(ctx, err)))
	}
	return nil
}

// unmade forgets a machine that was not registered: one that somebody else registered
// meanwhile under the name, too. Where Azure does not say, it stays in the file.
func (g *registering) unmade(ctx context.Context, why error) error {
	if !errors.Is(why, errTaken) {
		if there, err := g.manager.Machine(ctx, g.id); err != nil || there != nil {
			return nil
		}
	}
	g.made.Machine = ""
	return g.save(g.made)
}

var errTaken = errors.New("another machine stands in Azure under this name")

// inputs are the options of azcmagent connect by their names.
func (g *registering) inputs() (map[string]any, error) {
	text := g.manager.token.Text.Reveal()
	c, err := readClaims(text)
	if err != nil {
		return nil, err
	}
	in := map[string]any{
		"access-token": text, "tenant-id": c.Tenant, "subscription-id": g.r.SubscriptionID, "resource-group": g.r.ResourceGroup,
		"location": g.r.Location, "resource-name": g.r.Name,
	}
	if g.r.Cloud != "" {
		in["cloud"] = g.r.Cloud
	}
	if len(g.r.Tags) > 0 {
		in["tags"] = tags(g.r.Tags)
	}
	return in, nil
}

// assign gives the machine's identity the role, and waits until Azure knows of it.
func (g *registering) assign(ctx context.Context) error {
	principal, err := g.principal(ctx)
	if err != nil {
		return err
	}
	a := UserAssignment(g.r.ClusterID, principal)
	there, err := g.manager.Assigned(ctx, a.ID())
	if err != nil {
		return err
	}
	ours := slices.ContainsFunc(g.made.Assignments, func(id string) bool { return SameResource(id, a.ID()) })
	if there && !ours {
		return nil
	}
	if !there {
		if err := g.give(ctx, a); err != nil {
			return err
		}
	}
	m, err := g.Manager(ctx, &desired.AzureIdentity{Kind: desired.AzureArc, TenantID: g.r.By.TenantID}, g.r.Via, g.r.Manager)
	if err != nil {
		return err
	}
	defer m.Close()
	_, err = m.Cluster(ctx, g.r.ClusterID, true)
	return err
}

func (g *registering) give(ctx context.Context, a Assignment) error {
	g.made.forget(a.ID())
	g.made.Assignments = append(g.made.Assignments, a.ID())
	g.made.by(g.r)
	if err := g.save(g.made); err != nil {
		return err
	}
	ours, err := g.manager.Assign(ctx, a)
	if err != nil {
		return err // it may be there all the same
	}
	if !ours {
		g.made.forget(a.ID())
		return g.save(g.made)
	}
	g.say("gave the machine's identity the role " + a.Role)
	return nil
}

// identityTries is how often Azure is asked for the identity of a machine that it has
// only just made.
const identityTries = 12

func (g *registering) principal(ctx context.Context) (string, error) {
	for range identityTries {
		m, err := g.manager.Machine(ctx, g.id)
		if err != nil {
			return "", err
		}
		if m != nil && m.PrincipalID != "" {
			return m.PrincipalID, nil
		}
		select {
		case <-time.After(5 * g.endpoints.pause):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	return "", failed("look for the machine's identity", "Join again in some minutes.", fmt.Errorf("the machine %s has none yet", g.id))
}

// Unregister takes back what berth made in Azure: first the roles, then the machine,
// then what the agent knows of it. It does what it can and says what stayed.
func (s *Source) Unregister(ctx context.Context, say func(string)) (stayed []error) {
	m, err := s.made()
	if err != nil {
		return []error{err}
	}
	if m.empty() {
		return nil
	}
	keep := func(id string, err error) {
		stayed = append(stayed, fmt.Errorf("%s is still in Azure (az resource delete --ids): %w", id, err))
	}
	manager, err := s.managerOf(ctx, m)
	if err != nil {
		for _, id := range append(slices.Clone(m.Assignments), m.Machine) {
			if id != "" {
				keep(id, err)
			}
		}
		return stayed
	}
	defer manager.Close()
	for _, id := range slices.Clone(m.Assignments) {
		if err := manager.Unassign(ctx, id); err != nil {
			keep(id, err)
			continue
		}
		say("deleted the role assignment " + id)
		m.forget(id)
		stayed = append(stayed, optional(s.save(m))...)
	}
	if m.Machine == "" {
		return stayed
	}
	if err := manager.DeleteMachine(ctx, m.Machine); err != nil {
		keep(m.Machine, err)
		return stayed
	}
	say("deleted the machine " + m.Machine)
	if err := s.disconnect(ctx, m.Machine); err != nil {
		stayed = append(stayed, fmt.Errorf("the agent of Azure Arc was not disconnected (azcmagent disconnect --force-local-only): %w", err))
	}
	m.Machine = ""
	return append(stayed, optional(s.save(m))...)
}

func optional(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

func (s *Source) managerOf(ctx context.Context, m *made) (*Manager, error) {
	if m.By == nil {
		return nil, errors.New("who made it is not known")
	}
	if m.By.Kind == desired.AzureServicePrincipal && m.By.ClientSecretFile == "" && m.By.ClientSecretEnv == "" && m.By.ClientCertificateFile == "" {
		return nil, errors.New("the secret of who made it stood in the document alone, and is not kept")
	}
	return s.Manager(ctx, m.By, m.Way.egress(), m.Manager)
}

// tags are the agent's: name=value, with commas between.
func tags(m map[string]string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, name+"="+m[name])
	}
	return strings.Join(out, ",")
}
