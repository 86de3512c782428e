package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity"
	"github.com/berth-dev/berth/internal/provision"
)

// reachBudget is how long the sources of an artifact have to answer.
const reachBudget = 7 * time.Second

func checkArtifacts(ctx context.Context, v *visit) *finding {
	st, err := v.state()
	if err != nil {
		return unknownf("", "what the document means is not known: %v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, reachBudget)
	defer cancel()
	all := find[*desired.Artifact](st)
	parts := make([]*finding, len(all))
	var wg sync.WaitGroup
	for i, a := range all {
		wg.Go(func() {
			if err := converge.Safely(func() error { parts[i] = v.artifact(ctx, a); return nil }); err != nil {
				parts[i] = unknownf("report this as a defect of berth", "%v", err)
			}
		})
	}
	wg.Wait()
	f := &finding{}
	for _, p := range parts {
		f.notes = append(f.notes, p.notes...)
		f.field = cmp.Or(f.field, p.field)
	}
	return f.ok("the document names none")
}

func (v *visit) artifact(ctx context.Context, a *desired.Artifact) *finding {
	if v.inPlace(ctx, a) {
		return okf("%s is in place", a.Name)
	}
	sources, err := v.Fetcher.Reach(ctx, v.Host, a)
	if errors.Is(err, fs.ErrPermission) {
		return unread("where "+a.Name+" may be", err)
	}
	if err != nil {
		return failf(helps(err), "%v", err).at(a.Field)
	}
	f := &finding{}
	var had int
	for _, p := range sources {
		if p.Err != nil {
			f.warn(hintOf(p.Err), "%s: %s: %v", a.Name, p.URL, cause(p.Err))
			continue
		}
		had++
		v.reached(f, a, p)
	}
	if had == 0 {
		for i := range f.notes {
			f.notes[i].status = Error
		}
		f.at(a.Field)
	}
	return f
}

// reached is a source that has an artifact.
func (v *visit) reached(f *finding, a *desired.Artifact, p artifact.Reached) {
	size := "size unknown"
	if p.Size >= 0 {
		size = fmt.Sprintf("%.1f MB", float64(p.Size)/1e6)
	}
	if p.Digest == "" {
		f.warn("name its digest in the document, or in "+artifact.DigestDir, "%s: %s, nobody gives its digest (%s)", a.Name, size, p.URL)
		return
	}
	f.ok("%s: %s, digest by %s", a.Name, size, p.From)
}

func hintOf(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "packets are dropped on the way: check route, firewall and network security rules, or name a mirror"
	}
	if h, ok := errors.AsType[*artifact.DownloadError](err); ok {
		return h.Hint()
	}
	return ""
}

// cause is an error without the words that repeat what was asked for.
func cause(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", reachBudget)
	}
	if d, ok := errors.AsType[*artifact.DownloadError](err); ok {
		err = d.Err
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return err
}

// inPlace says whether nothing of an artifact has to be fetched.
func (v *visit) inPlace(ctx context.Context, a *desired.Artifact) bool {
	for _, f := range a.Files {
		if info, err := v.Host.Lstat(f.Path); err != nil || info.Mode.IsDir() {
			return false
		}
	}
	if a.Version == "" {
		return a.Image == ""
	}
	have, err := v.Fetcher.Version(ctx, v.Host, a.Files[0].Path)
	return err == nil && (have == "" || have == a.Version)
}

func checkPlan(ctx context.Context, v *visit) *finding {
	st, err := v.state()
	if err != nil {
		return unknownf("", "what the document means is not known: %v", err)
	}
	p, err := v.Plan(ctx, st)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return unread("what berth has on this machine", err)
	case asksFirst(err):
		return unknownf("", "kubelet's certificate can't be asked for: see the check credential")
	case err != nil:
		return failf(helps(err), "%v", err).at(provision.Explain(err).Field)
	case p.Empty():
		return okf("nothing is to be done")
	}
	return okf("%d actions", len(p.Actions))
}

// asksFirst says whether a plan fails for nothing but that what the certificate is asked for
// with is not here, which is another check's to say.
func asksFirst(err error) bool {
	if all, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok && len(all.Unwrap()) > 1 {
		return false
	}
	if e, ok := errors.AsType[*identity.Error](err); ok {
		return e.Reason == identity.ReasonNoToken
	}
	e, ok := errors.AsType[*exitcode.Error](err)
	return ok && e.Number == exitcode.Credential
}

// azcmagent is the program of Azure's agent.
var azcmagent = []string{"/usr/bin/azcmagent", "/opt/azcmagent/bin/azcmagent"}

func checkArc(ctx context.Context, v *visit) *finding {
	registered := v.Config != nil && v.Config.Identity.Arc != nil && v.Config.Identity.Arc.Registration != nil
	needed := v.Config != nil && v.Config.Identity.Arc != nil
	program, err := v.first(azcmagent)
	switch {
	case err != nil:
		return unread("whether the agent is there", err)
	case program == "" && v.References.Arc != nil && v.References.Arc.Agent != nil:
		return v.agentPackage(ctx, v.References.Arc)
	case program == "" && needed:
		return failf("install the Azure Connected Machine agent, or name its package in identity.arc.agent", "the agent is not there, and the document's identity is that of Azure Arc").at("identity.arc")
	case program == "":
		return okf("it is not there, and not needed")
	}
	said, err := v.askAgent(ctx, program)
	f := &finding{}
	switch {
	case errors.Is(err, errAgentUnread):
		return f.unknown("", "%v", err)
	case err != nil:
		return f.unknown(asRoot, "the agent does not say how it is: %v", err)
	case strings.EqualFold(said.Status, "Connected"):
		return f.ok("connected as %s", said.ResourceName)
	case said.ResourceName != "" && strings.EqualFold(said.Status, "Expired"):
		return f.failOrWarn(needed, "azcmagent disconnect --force-local-only, then connect the machine again", "registered as %s, whose identity is Expired", said.ResourceName)
	case said.ResourceName != "":
		return f.failOrWarn(needed, "systemctl status himdsd; azcmagent check", "registered as %s, and the agent is %s", said.ResourceName, said.Status)
	case registered && !strings.EqualFold(said.Status, "Error"):
		return f.ok("the agent is %s: the machine is registered when it joins", said.Status)
	case needed:
		return f.fail("azcmagent connect", "the agent is %s", said.Status).at("identity.arc")
	}
	return f.warn("azcmagent connect, if the machine is meant to be in Azure", "the agent is %s", said.Status)
}

// arcAgent is what the agent of Azure Arc says of itself.
type arcAgent struct {
	Status       string `json:"status"`
	ResourceName string `json:"resourceName"`
}

var errAgentUnread = errors.New("what the agent says of itself can't be read")

func (v *visit) askAgent(ctx context.Context, program string) (said arcAgent, err error) {
	out, err := v.Host.Run(ctx, host.Command{Path: program, Args: []string{"show", "-j"}})
	if err != nil {
		return said, err
	}
	if json.Unmarshal(out.Stdout, &said) != nil || said.Status == "" {
		return said, errAgentUnread
	}
	return said, nil
}

// errUnregistered: nobody can ask yet as the machine.
var errUnregistered = errors.New("the machine's identity is there when the join has registered the machine with Azure Arc")

// findUnregistered says whether the join is going to register the machine: until then it
// has no identity of Azure Arc.
func (v *visit) findUnregistered(ctx context.Context) bool {
	if v.settled() {
		return false
	}
	program, err := v.first(azcmagent)
	if err != nil || program == "" {
		return err == nil
	}
	said, err := v.askAgent(ctx, program)
	return err == nil && said.ResourceName == ""
}

// hasNone says whether an identity is the one that the machine has not got yet.
func (v *visit) hasNone(a *desired.AzureIdentity) bool {
	return a.Kind == desired.AzureArc && v.References.Arc != nil && v.unregistered()
}

// agentPackage looks for the package of an agent that is installed when the machine joins.
func (v *visit) agentPackage(ctx context.Context, r *component.ArcRegistration) *finding {
	ctx, cancel := context.WithTimeout(ctx, reachBudget)
	defer cancel()
	a := *r.Agent
	if len(r.CAFiles) > 0 {
		via := *a.Via
		for _, p := range r.CAFiles {
			text, err := v.Host.ReadFile(p)
			if err != nil {
				return unread("what is trusted on the way to the agent's package", err)
			}
			via.CAs = append(slices.Clone(via.CAs), string(text))
		}
		a.Via = &via
	}
	return v.artifact(ctx, &a)
}

// failOrWarn fails where the document needs the agent, and warns where it does not.
func (f *finding) failOrWarn(needed bool, remedy, format string, args ...any) *finding {
	if needed {
		return f.fail(remedy, format, args...).at("identity.arc")
	}
	return f.warn(remedy, format, args...)
}

// first is the first of the paths that is there.
func (v *visit) first(paths []string) (string, error) {
	for _, p := range paths {
		if there, err := v.there(p); there || err != nil {
			return p, err
		}
	}
	return "", nil
}
