package converge

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/coreos/go-systemd/v22/unit"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

const adminUnits = "/etc/systemd/system"

func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

// unitPlan is what is known of one unit while it is planned.
type unitPlan struct {
	*planning
	u      *desired.Unit
	t      *task
	status host.UnitStatus
	// fragment is the definition's path as it will be.
	fragment string
	// inputs are definition, drop-ins and triggers as they will be; gone is what is
	// no part of the definition any more.
	inputs, gone []string
	// bundle is what the system makes of CA certificates that are inputs.
	bundle []string
}

func (p *planning) unit(ctx context.Context, t *task, u *desired.Unit) error {
	up := &unitPlan{planning: p, u: u, t: t}
	if !p.opt.Offline {
		var err error
		if up.status, err = p.h.Unit(ctx, u.Name); err != nil {
			return err
		}
	}
	if err := up.locate(); err != nil {
		return err
	}
	for _, step := range []func() error{up.unmask, up.enablement, up.activation} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// locate finds the definition and everything that a change of restarts the unit.
func (up *unitPlan) locate() error {
	for _, dir := range definitionDirs {
		p := dir + "/" + up.u.Name
		if q := up.expected(p); q != nil {
			up.fragment = p
			break
		}
		info, err := lstat(up.h, p)
		if err != nil {
			return err
		}
		if info != nil && !up.deleted[p] && !up.isMask(p) {
			up.fragment = p
			break
		}
	}
	drops, err := dropIns(up.h, up.u.Name)
	if err != nil {
		return err
	}
	drops = slices.DeleteFunc(drops, func(p string) bool { return up.deleted[p] })
	up.gone = up.goneOf(up.u.Name)
	up.inputs = append(append(up.inputs, drops...), up.u.Triggers...)
	if up.fragment != "" {
		up.inputs = append(up.inputs, up.fragment)
	}
	up.inputs = append(append(up.inputs, up.expectedDropIns()...), up.identity()...)
	slices.Sort(up.inputs)
	up.inputs = slices.Compact(up.inputs)
	return nil
}

// identity is what a program reads once, when it starts, of what the unit comes
// after: CA certificates and the credential that berth obtained. The link to the
// credential in force is not part of it: its user moves it when it renews.
func (up *unitPlan) identity() []string {
	var out []string
	for _, id := range up.u.After {
		switch r := up.st.Lookup(id).(type) {
		case *desired.TrustAnchor:
			out = append(out, up.anchorPaths(r)...)
			up.bundle = up.bundlePath()
		case *desired.ClientCertificate:
			out = append(out, up.issuedFiles(r)...)
		}
	}
	return out
}

func (up *unitPlan) issuedFiles(c *desired.ClientCertificate) []string {
	files, err := up.opt.Issuer.Files(c, Credential{})
	if err != nil {
		return nil
	}
	var out []string
	for _, r := range files {
		if f, ok := r.(*desired.File); ok {
			out = append(out, f.Path)
		}
	}
	return out
}

func (up *unitPlan) expectedDropIns() []string {
	up.mu.Lock()
	defer up.mu.Unlock()
	var out []string
	for p := range up.content {
		if path.Base(path.Dir(p)) == up.u.Name+".d" && strings.HasSuffix(p, ".conf") {
			out = append(out, p)
		}
	}
	return out
}

func (up *unitPlan) isMask(p string) bool {
	target, err := up.h.Readlink(p)
	return err == nil && target == "/dev/null"
}

// unmask removes a mask that stands in the way of a unit whose definition is
// elsewhere. A mask in place of a file of ours is that file's matter.
func (up *unitPlan) unmask() error {
	for _, dir := range definitionDirs[:2] {
		p := dir + "/" + up.u.Name
		if up.expected(p) != nil || up.deleted[p] || !up.isMask(p) {
			continue
		}
		info, err := lstat(up.h, p)
		if err != nil {
			return err
		}
		if err := up.takeAway(p, info, VerbUnmask, "masked by "+p); err != nil {
			return err
		}
	}
	return nil
}

// enablement compares the links that [Install] asks for with those there are.
func (up *unitPlan) enablement() error {
	if up.u.Enablement == desired.AnyEnablement {
		return nil
	}
	links, err := up.installLinks()
	if err != nil {
		return err
	}
	for _, l := range links {
		if err := up.enableLink(l); err != nil {
			return err
		}
	}
	return nil
}

func (up *unitPlan) enableLink(q *put) error {
	info, err := lstat(up.h, q.path)
	if err != nil {
		return err
	}
	if up.u.Enablement == desired.Disabled {
		if info == nil {
			return nil
		}
		return up.takeAway(q.path, info, VerbDisable, q.path+" is there")
	}
	if target, err := up.h.Readlink(q.path); err == nil && path.Base(target) == up.u.Name {
		return nil
	}
	q.late = true
	if err := up.mayPut(q, info); err != nil {
		return err
	}
	up.t.puts = append(up.t.puts, q)
	up.t.act(VerbEnable, q.path+" is absent"+q.takenOver(), DisruptNone)
	return nil
}

// installLinks are the links of systemctl enable for the unit's definition.
func (up *unitPlan) installLinks() ([]*put, error) {
	text, err := up.definition()
	if err != nil {
		return nil, err
	}
	opts, err := unit.DeserializeOptions(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read definition of %s: %w", up.u.Name, err)
	}
	suffix := map[string]string{"WantedBy": ".wants", "RequiredBy": ".requires"}
	var out []*put
	for _, o := range opts {
		if o.Section != "Install" {
			continue
		}
		for _, name := range strings.Fields(o.Value) {
			switch {
			case o.Name == "Alias":
				out = append(out, up.installLink(adminUnits+"/"+name))
			case suffix[o.Name] != "":
				out = append(out, up.installLink(adminUnits+"/"+name+suffix[o.Name]+"/"+up.u.Name))
			}
		}
	}
	return out, nil
}

func (up *unitPlan) installLink(p string) *put {
	return &put{kind: putLink, path: p, target: up.fragment}
}

func (up *unitPlan) definition() (string, error) {
	if up.fragment == "" {
		return "", nil
	}
	if q := up.expected(up.fragment); q != nil {
		return string(q.content.Data()), nil
	}
	data, err := up.h.ReadFile(up.fragment)
	return string(data), err
}

// activation plans start, stop or restart.
func (up *unitPlan) activation() error {
	switch {
	case up.u.Activation == desired.AnyActivation:
		return nil
	case up.opt.Offline:
		up.t.postpone(VerbStart, "units start on first boot")
		return nil
	case up.u.Activation == desired.Stopped:
		up.planStop()
		return nil
	}
	if !up.running() {
		up.plan(VerbStart, "is "+up.status.ActiveState, DisruptNone)
		return nil
	}
	reason, err := up.owed()
	if err != nil {
		return err
	}
	if reason != "" {
		up.plan(VerbRestart, reason, DisruptRestart)
		return nil
	}
	return up.reread()
}

// adopt stamps a unit that runs with what is wanted but was started by another,
// or by a run that was cut off before it could.
func (up *unitPlan) adopt(hash string) {
	up.t.settle = func() error {
		return writeStamp(up.h, up.u.Name, stamp{InvocationID: up.status.InvocationID, Hash: hash})
	}
}

func (up *unitPlan) running() bool {
	return up.status.ActiveState == "active" || up.status.ActiveState == "reloading"
}

func (up *unitPlan) planStop() {
	if up.status.ActiveState == "inactive" || up.status.ActiveState == "failed" {
		return
	}
	up.t.act(VerbStop, "is "+up.status.ActiveState, DisruptRestart)
	up.t.live = func(ctx context.Context) error { return up.h.StopUnit(ctx, up.u.Name) }
}

func (up *unitPlan) plan(v Verb, reason string, d Disruption) {
	up.t.act(v, reason, d)
	up.t.live = up.start
}
