package azure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// distribution is the package manager of a cloud's machine.
type distribution struct {
	*cloud
	// name is that of the package that is fetched, state how it is on the machine.
	name, state string
	// log are the calls; fails ends the first of them that begins so, with its work done
	// where it is one of dpkg's that end late.
	calls   []string
	refuses string
	late    bool
}

const (
	debHead = "!<arch>\ndebian-binary   1 0 0 100644 4 `\n2.0\n"
	rpmHead = "\xed\xab\xee\xdb\x03\x00"
)

// newDistribution has no agent, and a document that names a package which begins so.
func newDistribution(t *testing.T, head string) *distribution {
	d := &distribution{cloud: newCloud(t), name: component.ArcPackage}
	if err := d.host.Remove("/usr/bin/azcmagent"); err != nil {
		t.Fatal(err)
	}
	d.r.Agent = &desired.Artifact{Name: component.ArcPackage, Files: []desired.ArtifactFile{{Path: component.ArcPackageFile, Mode: 0o600}}}
	d.fetch = func(context.Context, *desired.Artifact) error {
		d.calls = append(d.calls, "fetch")
		d.host.Put(component.ArcPackageFile, head, 0o600)
		return nil
	}
	for _, program := range []string{"dpkg", "dpkg-deb", "dpkg-query", "rpm"} {
		d.host.Program("/usr/bin/"+program, func(c host.Command) host.Output { return d.run(program, c) })
	}
	return d
}

func (d *distribution) run(program string, c host.Command) host.Output {
	call := program + " " + strings.Join(c.Args, " ")
	d.calls = append(d.calls, call)
	refused := d.refuses != "" && strings.HasPrefix(call, d.refuses)
	if refused && !d.late {
		return host.Output{ExitCode: 2, Stderr: []byte("dpkg: error: it is locked\n")}
	}
	switch {
	case strings.HasPrefix(call, "rpm --upgrade") && !strings.Contains(call, "--replacepkgs") && d.state != "":
		return host.Output{ExitCode: 1, Stderr: []byte("\tpackage azcmagent-1.0 is already installed\n")}
	case strings.Contains(call, "--purge") && !strings.Contains(call, "--force-remove-reinstreq") && d.state == "half-installed":
		return host.Output{ExitCode: 1, Stderr: []byte("dpkg: error: package is in a very bad inconsistent state\n")}
	case strings.Contains(call, "--field"), strings.Contains(call, "--package"):
		return host.Output{Stdout: []byte(d.name + "\n")}
	case strings.Contains(call, "--show"), strings.Contains(call, "--query"):
		if d.state == "" {
			return host.Output{ExitCode: 1}
		}
		return host.Output{Stdout: []byte(d.state)}
	case strings.Contains(call, "--install"), strings.Contains(call, "--upgrade"):
		if m, err := d.source.made(); err != nil || m.Package == nil || m.Package.Done {
			d.t.Errorf("%s was called before it was noted: %+v, %v", call, m.Package, err)
		}
		if !slices.Contains(c.Env, "DEBIAN_FRONTEND=noninteractive") {
			d.t.Errorf("%s asks questions: %q", call, c.Env)
		}
		d.state = "installed"
		d.host.Program("/usr/bin/azcmagent", d.agent)
	default:
		d.state = ""
		_ = d.host.Remove("/usr/bin/azcmagent")
	}
	if refused {
		return host.Output{ExitCode: 1, Stderr: []byte("dpkg: error: its script failed\n")}
	}
	return host.Output{}
}

// changes are the calls that change the machine.
func (d *distribution) changes() string {
	all := slices.DeleteFunc(slices.Clone(d.calls), func(c string) bool {
		return strings.Contains(c, "--show") || strings.Contains(c, "--query") || strings.Contains(c, "--field")
	})
	d.calls = nil
	return strings.Join(all, "; ")
}

// A machine without the agent gets its package, is registered by it, and has neither when
// it has left.
func TestPackage(t *testing.T) {
	for name, c := range map[string]struct{ head, install, remove string }{
		"deb": {debHead, "fetch; dpkg --install " + component.ArcPackageFile, "dpkg --force-remove-reinstreq --purge azcmagent"},
		"rpm": {rpmHead, "fetch; rpm --upgrade --replacepkgs --oldpackage " + component.ArcPackageFile, "rpm --erase azcmagent"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDistribution(t, c.head)
			if err := d.register(); err != nil || !d.local || !d.in(edge) {
				t.Fatalf("%v, %v", err, d.objects)
			}
			if got := d.changes(); got != c.install || d.has(component.ArcPackageFile) {
				t.Errorf("%s; the file is there: %t", got, d.has(component.ArcPackageFile))
			}
			if err := d.register(); err != nil || d.changes() != "" {
				t.Errorf("again: %v, %q", err, d.calls)
			}
			if stayed := d.unregister(); len(stayed) > 0 || d.changes() != c.remove || d.has(MadePath) || len(d.objects) > 0 {
				t.Errorf("%v, %q, %v", stayed, d.calls, d.objects)
			}
		})
	}
}

// An agent that was there is nobody's to install or to take away, and a node needs none.
func TestPackageIsNotNeeded(t *testing.T) {
	d := newDistribution(t, debHead)
	if err := d.registers(true); err != nil || len(d.calls) > 0 {
		t.Errorf("a node: %v, %q", err, d.calls)
	}
	d.host.Program("/usr/bin/azcmagent", d.agent)
	d.state = "installed"
	if err := d.register(); err != nil || len(d.calls) > 0 {
		t.Errorf("%v, %q", err, d.calls)
	}
	if stayed := d.unregister(); len(stayed) > 0 || len(d.calls) > 0 || !d.has("/usr/bin/azcmagent") {
		t.Errorf("%v, %q", stayed, d.calls)
	}
}

// What is refused touches nothing, and leaves nothing to take back.
func TestPackageRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*distribution)
		head   string
		want   string
	}{
		"another package":     {func(d *distribution) { d.name = "sl" }, debHead, `it is the package "sl"`},
		"no package":          {func(*distribution) {}, "#!/bin/sh\n", "neither a Debian nor an RPM package"},
		"nothing":             {func(*distribution) {}, "", "neither a Debian nor an RPM package"},
		"it is damaged there": {func(d *distribution) { d.state = "half-installed" }, debHead, "half-installed"},
		"its rest is there":   {func(d *distribution) { d.state = "config-files" }, debHead, "config-files"},
		"no such manager":     {func(d *distribution) { _ = d.host.Remove("/usr/bin/dpkg-deb") }, debHead, "dpkg-deb"},
		"it can't be fetched": {func(d *distribution) {
			d.fetch = func(context.Context, *desired.Artifact) error { return errors.New("no route") }
		}, "", "no route"},
		"the manager is busy":  {func(d *distribution) { d.refuses = "dpkg --install" }, debHead, "it is locked"},
		"its scripts complain": {func(d *distribution) { d.refuses, d.late = "dpkg --install", true }, debHead, "its script failed"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDistribution(t, c.head)
			c.change(d)
			before := d.state
			err := d.register()
			if err == nil || !strings.Contains(err.Error(), c.want) || name != "it can't be fetched" && hintOf(err) == "" {
				t.Errorf("%v (%s)", err, hintOf(err))
			}
			if d.state != before || d.has(MadePath) || d.has(component.ArcPackageFile) || d.has("/usr/bin/azcmagent") || len(d.objects) > 0 {
				t.Errorf("%q, %q", d.state, d.calls)
			}
		})
	}
}

// A package that could be neither installed nor taken away is continued by the next run,
// and taken away by leave.
func TestPackageHalfInstalled(t *testing.T) {
	for name, next := range map[string]func(*distribution) error{
		"join":  func(d *distribution) error { return d.register() },
		"leave": func(d *distribution) error { return errors.Join(d.unregister()...) },
	} {
		d := newDistribution(t, debHead)
		d.refuses, d.late = "dpkg", true
		d.host.Program("/usr/bin/dpkg", func(c host.Command) host.Output {
			if d.refuses != "" && slices.Contains(c.Args, "--purge") {
				return host.Output{ExitCode: 1}
			}
			return d.run("dpkg", c)
		})
		if err := d.register(); err == nil || !d.has(MadePath) {
			t.Fatalf("%s: %v", name, err)
		}
		d.refuses, d.calls = "", nil
		if err := next(d); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := map[string]string{"join": "fetch; dpkg --install " + component.ArcPackageFile, "leave": "dpkg --force-remove-reinstreq --purge azcmagent"}[name]; d.changes() != want {
			t.Errorf("%s: %q, want %q", name, d.calls, want)
		}
	}
}

// A package manager that is killed while it installs has done a part, or all of it without
// berth having learned of it: the next join goes on, and leave takes it away.
func TestPackageCutOff(t *testing.T) {
	for kind, head := range map[string]string{"dpkg": debHead, "rpm": rpmHead} {
		for _, state := range []string{"", "half-installed", "installed"} {
			for name, next := range map[string]func(*distribution) error{
				"join":  func(d *distribution) error { return d.register() },
				"leave": func(d *distribution) error { return errors.Join(d.unregister()...) },
			} {
				d := newDistribution(t, head)
				ctx, interrupt := context.WithCancel(context.Background())
				d.host.Program("/usr/bin/"+kind, func(c host.Command) host.Output {
					if ctx.Err() != nil || c.Args[0] != "--install" && c.Args[0] != "--upgrade" {
						return d.run(kind, c)
					}
					interrupt()
					d.run(kind, c)
					d.state = state
					return host.Output{ExitCode: 137}
				})
				if err := d.source.Register(ctx, d.r, false, d.fetch, func(string) {}); err == nil || !d.has(MadePath) {
					t.Errorf("%s %s, %q: %v, noted %t", kind, name, state, err, d.has(MadePath))
				}
				if err := next(d); err != nil {
					t.Errorf("%s %s, %q: %v", kind, name, state, err)
				}
				if stayed := d.unregister(); len(stayed) > 0 || d.state != "" || d.has(MadePath) {
					t.Errorf("%s %s, %q: %v, %q", kind, name, state, stayed, d.state)
				}
			}
		}
	}
}

// A leave that is interrupted while it asks for the package still knows of it afterwards.
func TestPackageStateIsUnknown(t *testing.T) {
	d := newDistribution(t, debHead)
	if err := d.register(); err != nil {
		t.Fatal(err)
	}
	d.host.Program("/usr/bin/dpkg-query", func(host.Command) host.Output { return host.Output{ExitCode: 137} })
	if stayed := d.unregister(); len(stayed) != 1 || d.state != "installed" || !d.has(MadePath) {
		t.Errorf("%v, package %q, noted %t", stayed, d.state, d.has(MadePath))
	}
	d.host.Program("/usr/bin/dpkg-query", func(c host.Command) host.Output { return d.run("dpkg-query", c) })
	if stayed := d.unregister(); len(stayed) > 0 || d.state != "" || d.has(MadePath) {
		t.Errorf("%v, package %q", stayed, d.state)
	}
}

// What berth installed stays while somebody else's machine needs it, and is named; so is
// one that can't be taken away, for the next run.
func TestPackageStays(t *testing.T) {
	d := newDistribution(t, debHead)
	if err := d.register(); err != nil {
		t.Fatal(err)
	}
	d.name, d.cloud.name = "", "other"
	stayed := d.unregister()
	if len(stayed) != 1 || !strings.Contains(fmt.Sprint(stayed), "connected as") || d.state != "installed" || d.has(MadePath) {
		t.Errorf("%v, %q", stayed, d.calls)
	}
	d = newDistribution(t, debHead)
	if err := d.register(); err != nil {
		t.Fatal(err)
	}
	d.refuses = "dpkg --force-remove-reinstreq --purge"
	if stayed := d.unregister(); len(stayed) != 1 || !strings.Contains(fmt.Sprint(stayed), "it is locked") || !d.has(MadePath) {
		t.Errorf("%v", stayed)
	}
	d.refuses = ""
	if stayed := d.unregister(); len(stayed) > 0 || d.state != "" || d.has(MadePath) {
		t.Errorf("%v", stayed)
	}
}

// An agent that does not say how it is may be connected as somebody else's machine: its
// package stays until it says so, or until it is gone.
func TestPackageOfSilentAgent(t *testing.T) {
	silent := func(host.Command) host.Output {
		return host.Output{ExitCode: 61, Stdout: []byte("level=fatal msg=\"AZCM0061: the agent service is not reached\"\n")}
	}
	for name, next := range map[string]struct {
		change func(*distribution)
		want   string
	}{
		"as the machine that berth deleted": {func(d *distribution) { d.host.Program("/usr/bin/azcmagent", d.agent) }, ""},
		"as nobody":                         {func(d *distribution) { d.host.Program("/usr/bin/azcmagent", d.agent); d.local = false }, ""},
		"as another": {func(d *distribution) {
			d.host.Program("/usr/bin/azcmagent", d.agent)
			d.cloud.name = "other"
		}, "connected as"},
		"its program is gone": {func(d *distribution) { _ = d.host.Remove("/usr/bin/azcmagent") }, ""},
		"somebody removed it": {func(d *distribution) { d.state = "" }, ""},
	} {
		d := newDistribution(t, debHead)
		if err := d.register(); err != nil {
			t.Fatal(err)
		}
		d.host.Program("/usr/bin/azcmagent", silent)
		for range 2 {
			stayed := d.unregister()
			if len(stayed) == 0 {
				t.Fatalf("%s: nothing is said of it", name)
			}
			err := stayed[len(stayed)-1]
			if !strings.Contains(err.Error(), "is not known") || !strings.Contains(err.Error(), "AZCM0061") || !strings.Contains(hintOf(err), "then berth leave again") {
				t.Errorf("%s: %v (%s)", name, err, hintOf(err))
			}
			if d.state != "installed" || !d.has(MadePath) || len(d.objects) > 0 {
				t.Fatalf("%s: package %q, noted %t, %v", name, d.state, d.has(MadePath), d.objects)
			}
		}
		next.change(d)
		err := errors.Join(d.unregister()...)
		if (err == nil) != (next.want == "") || err != nil && !strings.Contains(err.Error(), next.want) || (d.state != "") != (next.want != "") || d.has(MadePath) {
			t.Errorf("%s: %v, package %q, noted %t", name, err, d.state, d.has(MadePath))
		}
	}
}

// A package that was never installed whole has an agent that never said anything.
func TestPackageOfUnfinishedAgent(t *testing.T) {
	d := newDistribution(t, debHead)
	ctx, interrupt := context.WithCancel(context.Background())
	d.host.Program("/usr/bin/dpkg", func(c host.Command) host.Output {
		if ctx.Err() != nil || c.Args[0] != "--install" && c.Args[0] != "--upgrade" {
			return d.run("dpkg", c)
		}
		interrupt()
		d.run("dpkg", c)
		return host.Output{ExitCode: 137}
	})
	if err := d.source.Register(ctx, d.r, false, d.fetch, func(string) {}); err == nil || !d.has(MadePath) {
		t.Fatal(err)
	}
	d.host.Program("/usr/bin/azcmagent", func(host.Command) host.Output { return host.Output{ExitCode: 61} })
	if stayed := d.unregister(); len(stayed) > 0 || d.state != "" || d.has(MadePath) {
		t.Errorf("%v, package %q, noted %t", stayed, d.state, d.has(MadePath))
	}
}
