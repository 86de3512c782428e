package azure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
)

const registerDuring = "register the machine with Azure Arc"

// Register registers the machine with Azure Arc where it is not yet, and lets its
// identity ask how the cluster is reached where the document says so. A machine that is
// registered already is taken as it is. settled: the machine is a node of this cluster,
// so that its role is there and nobody is asked while the agent is connected; one that is
// ill, disconnected, or connected under another name keeps no node from its document. A run
// that was cut off is continued. fetch brings the agent's package, where that is to be
// installed.
func (s *Source) Register(ctx context.Context, r *component.ArcRegistration, settled bool, fetch Fetch, say func(string)) error {
	if err := s.forgetInputs(); err != nil {
		return failed(registerDuring, "Remove "+arcInputs+": it holds a token.", err)
	}
	if !settled {
		if err := s.By(r.Via).provide(ctx, r.Agent, fetch, say); err != nil {
			return err
		}
	}
	err := s.register(ctx, r, settled, say)
	if err != nil && settled && ctx.Err() == nil {
		say("the registration with Azure Arc was left as it is: " + err.Error())
		return nil
	}
	return err
}

func (s *Source) register(ctx context.Context, r *component.ArcRegistration, settled bool, say func(string)) error {
	agent, err := s.agent(ctx)
	if err != nil {
		return err
	}
	id := MachineID(r.SubscriptionID, r.ResourceGroup, r.Name)
	there := agent.id()
	switch {
	case there != "" && !SameResource(there, id):
		return failed(registerDuring, "Name it so in identity.arc (machineName, resourceGroup, subscriptionId), or disconnect it: azcmagent disconnect.",
			fmt.Errorf("the machine is registered already, as %s", there))
	case there != "" && (r.ClusterID == "" || settled && !s.owesRole(id)):
		return nil
	}
	g := &registering{Source: s.By(r.Via), r: r, id: id, agent: agent, connected: there != "", say: say}
	return g.run(ctx)
}

// owesRole says whether a run that was cut off, or failed, has registered the machine and not
// seen its role.
func (s *Source) owesRole(id string) bool {
	m, err := s.made()
	return err == nil && m.of(id).Owed
}

// registering is one run.
type registering struct {
	*Source
	r     *component.ArcRegistration
	id    string
	agent *arcAgent
	// connected: the machine was registered when the run began.
	connected bool
	manager   *Manager
	made      *made
	note      *note
	say       func(string)
}

func (g *registering) run(ctx context.Context) (err error) {
	if g.manager, err = g.Manager(ctx, g.r.By, g.r.Via, g.r.Manager); err != nil {
		return err
	}
	defer g.manager.Close()
	if g.made, err = g.Source.made(); err != nil {
		return failed("read what berth made in Azure", damagedRemedy, err)
	}
	g.note = g.made.of(g.id)
	if !g.connected {
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
	case there != nil && !g.note.is(there):
		return connectFailed(g.id, errTaken)
	case there != nil:
		if err := g.manager.DeleteMachine(ctx, g.id); err != nil {
			return err
		}
	}
	g.note.begin()
	g.note.Owed = g.r.ClusterID != ""
	if err := g.keep(); err != nil {
		return err
	}
	inputs, err := g.inputs()
	if err != nil {
		return err
	}
	if err := g.Source.connect(ctx, g.agent.program, inputs); err != nil {
		return connectFailed(g.id, errors.Join(err, g.unmade(ctx)))
	}
	return nil
}

// keep saves the note, and who makes what it tells of.
func (g *registering) keep() error {
	g.note.by(g.r)
	return g.save(g.made)
}

// unmade forgets a machine that was not registered, also where somebody else registered
// one meanwhile under the name. Where Azure does not say, it stays in the file.
func (g *registering) unmade(ctx context.Context) error {
	there, err := g.manager.Machine(ctx, g.id)
	if err != nil || there != nil && g.note.is(there) {
		return nil
	}
	g.note.Made = false
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
	tagged := map[string]string{}
	maps.Copy(tagged, g.r.Tags)
	tagged[component.RegistrationTag] = g.note.Tag
	in := map[string]any{
		"access-token": text, "tenant-id": c.Tenant, "subscription-id": g.r.SubscriptionID, "resource-group": g.r.ResourceGroup,
		"location": g.r.Location, "resource-name": g.r.Name, "tags": tags(tagged),
	}
	if g.r.Cloud != "" {
		in["cloud"] = g.r.Cloud
	}
	return in, nil
}

// assign gives the machine's identity the role, and waits until Azure knows of it.
func (g *registering) assign(ctx context.Context) error {
	principal, err := g.principal(ctx)
	if err != nil {
		return err
	}
	if g.note.Made && g.note.Principal != principal {
		g.note.Principal = principal
		if err := g.keep(); err != nil {
			return err
		}
	}
	a := UserAssignment(g.r.ClusterID, principal)
	there, err := g.manager.Assigned(ctx, a.ID())
	if err != nil {
		return err
	}
	if there && !g.note.gave(a.ID()) {
		return g.seen()
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
	if _, err = m.Cluster(ctx, g.r.ClusterID, true); err != nil {
		return err
	}
	return g.seen()
}

// seen notes that the machine's identity has its role.
func (g *registering) seen() error {
	if !g.note.Owed {
		return nil
	}
	g.note.Owed = false
	return g.keep()
}

func (g *registering) give(ctx context.Context, a Assignment) error {
	g.note.forget(a.ID())
	g.note.Assignments = append(g.note.Assignments, a.ID())
	if err := g.keep(); err != nil {
		return err
	}
	ours, err := g.manager.Assign(ctx, a)
	switch {
	case err != nil && !refused(err):
		return err // it may be there all the same
	case err != nil || !ours:
		g.note.forget(a.ID())
		return errors.Join(err, g.save(g.made))
	}
	g.say("gave the machine's identity the role " + a.Role)
	return nil
}

// refused says that Azure has not done what it was asked for, and knows that.
func refused(err error) bool {
	e, ok := errors.AsType[*StatusError](err)
	return ok && slices.Contains([]int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound}, e.Status)
}

// identityTries is how often Azure is asked for the identity of a machine that it has
// only just made.
const identityTries = 12

func (g *registering) principal(ctx context.Context) (string, error) {
	for range identityTries {
		m, err := g.manager.Machine(ctx, g.id)
		switch {
		case err != nil:
			return "", err
		case m == nil && g.connected:
			return "", failed("look for the machine's identity", "Have the agent forget it: azcmagent disconnect --force-local-only; then join again, and the machine is registered anew.",
				fmt.Errorf("the agent is connected to the machine %s, which is not in Azure any more", g.id))
		case m != nil && m.PrincipalID != "":
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

// forgetInputs removes what a run that was killed told the agent: it holds a token.
func (s *Source) forgetInputs() error { return ledger.RemoveIfThere(s.host, arcInputs) }

// tags are the agent's: name=value, with commas between.
func tags(m map[string]string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, name+"="+m[name])
	}
	return strings.Join(out, ",")
}
