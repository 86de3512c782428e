package azure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// Fetch brings an artifact to the paths of its files, its digest compared.
type Fetch func(ctx context.Context, a *desired.Artifact) error

// installed is the agent's package, which berth installed, or was about to.
type installed struct {
	// Packager is one of packagers. Done: it has done it.
	Packager string `json:"packager"`
	Done     bool   `json:"done,omitempty"`
	// Deleted is the machine that is in Azure no more, of which the agent may not know yet.
	Deleted string `json:"deleted,omitempty"`
}

// packager is a program that installs packages of one form, and runs their scripts.
type packager struct {
	// magic begins each of its packages.
	magic string
	// name prints that of a package in a file, which comes last but for rest.
	name, rest []string
	// state prints how a package is, whose name comes last; absent are the words for one
	// that is not there, besides an exit code that is not 0.
	state  []string
	absent string
	// install takes a file, also of a package that is there, in part or whole; remove takes a
	// name, with all that the package calls its own, also where the package is there in part.
	install, remove []string
}

// packagers are those of distributions, by their names.
//
// Source: dpkg(1), dpkg-deb(1), dpkg-query(1), deb(5); rpm(8).
var packagers = map[string]packager{
	"dpkg": {
		magic: "!<arch>\ndebian-binary",
		name:  []string{"/usr/bin/dpkg-deb", "--field"}, rest: []string{"Package"},
		state: []string{"/usr/bin/dpkg-query", "--show", "--showformat", "${db:Status-Status}"}, absent: "not-installed",
		install: []string{"/usr/bin/dpkg", "--install"}, remove: []string{"/usr/bin/dpkg", "--force-remove-reinstreq", "--purge"},
	},
	"rpm": {
		magic: "\xed\xab\xee\xdb",
		name:  []string{"/usr/bin/rpm", "--query", "--queryformat", "%{NAME}", "--package"},
		state: []string{"/usr/bin/rpm", "--query"},
		// --install puts another version beside that of a run which was cut off, and --erase
		// refuses to choose (seen with rpm 4.18).
		install: []string{"/usr/bin/rpm", "--upgrade", "--replacepkgs", "--oldpackage"}, remove: []string{"/usr/bin/rpm", "--erase"},
	},
}

const packageDuring = "install the agent of Azure Arc"

// provide installs the agent's package where the machine has no agent. One that is there
// is left alone, unless a run was cut off while berth installed it.
func (s *Source) provide(ctx context.Context, a *desired.Artifact, fetch Fetch, say func(string)) error {
	if a == nil {
		return nil
	}
	if err := s.forgetPackage(); err != nil { // of a run that was cut off
		return failed(packageDuring, "Remove "+component.ArcPackageFile+".", err)
	}
	m, err := s.made()
	if err != nil {
		return failed("read what berth made in Azure", damagedRemedy, err)
	}
	program, err := s.arcProgram()
	if err != nil || program != "" && (m.Package == nil || m.Package.Done) {
		return err
	}
	if err := s.stateDir(); err != nil {
		return failed(packageDuring, "Look at "+paths.StateDir+".", err)
	}
	if err := fetch(ctx, a); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", packageDuring, err), s.forgetPackage())
	}
	return errors.Join(s.unpack(ctx, m, say), s.forgetPackage())
}

// forgetPackage removes the package's file, which is needed no more.
func (s *Source) forgetPackage() error {
	return ledger.RemoveIfThere(s.host, component.ArcPackageFile)
}

// unpack installs the package that was fetched. What berth is about to do is noted before:
// a run that is cut off is continued, and berth leave takes the package away.
func (s *Source) unpack(ctx context.Context, m *made, say func(string)) error {
	kind, err := s.packagerOf(ctx)
	if err != nil {
		return err
	}
	p := packagers[kind]
	if m.Package == nil {
		if state, err := s.stateOf(ctx, p); err != nil {
			return packageFailed(err)
		} else if state != "" {
			return failed(packageDuring, "Take it away ("+strings.Join(p.remove, " ")+" "+component.ArcPackage+"), or have it repaired; then join again.",
				fmt.Errorf("the package %s is known to the machine (%s), and its program is not there", component.ArcPackage, state))
		}
	}
	m.Package = &installed{Packager: kind}
	if err := s.save(m); err != nil {
		return err
	}
	if _, err := s.packages(ctx, p.install, component.ArcPackageFile); err != nil {
		return s.undone(ctx, m, p, err)
	}
	m.Package.Done = true
	if err := s.save(m); err != nil {
		return err
	}
	say("installed the agent of Azure Arc (package " + component.ArcPackage + ")")
	return nil
}

// undone takes away what is left of a package that could not be installed. What can't be
// learned of it, as where the run is interrupted, stays noted.
func (s *Source) undone(ctx context.Context, m *made, p packager, err error) error {
	state, unknown := s.stateOf(ctx, p)
	if unknown != nil {
		return packageFailed(errors.Join(err, unknown))
	}
	if state != "" {
		if _, gone := s.packages(ctx, p.remove, component.ArcPackage); gone != nil {
			return packageFailed(errors.Join(err, gone))
		}
	}
	m.Package = nil
	return packageFailed(errors.Join(err, s.save(m)))
}

func packageFailed(err error) error {
	return failed(packageDuring, "Look at what the package manager says: another one that runs, or a package that this one needs; then join again.", err)
}

// packagerOf is the one that installs what was fetched, if that is the agent's package.
func (s *Source) packagerOf(ctx context.Context) (string, error) {
	const remedy = "Name the package azcmagent for this distribution (.deb or .rpm) in identity.arc.agent."
	head, err := s.head(component.ArcPackageFile)
	if err != nil {
		return "", failed(packageDuring, remedy, err)
	}
	for kind, p := range packagers {
		if !strings.HasPrefix(head, p.magic) {
			continue
		}
		out, err := s.packages(ctx, p.name, append([]string{component.ArcPackageFile}, p.rest...)...)
		if name := strings.TrimSpace(out); err == nil && name != component.ArcPackage {
			err = fmt.Errorf("it is the package %q", line(name))
		}
		if err != nil {
			return "", failed(packageDuring, remedy, err)
		}
		return kind, nil
	}
	return "", failed(packageDuring, remedy, errors.New("what was fetched is neither a Debian nor an RPM package"))
}

// head is how a file begins.
func (s *Source) head(p string) (string, error) {
	f, err := s.host.Open(p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b := make([]byte, 32)
	n, err := io.ReadFull(f, b)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return string(b[:n]), err
}

// stateOf is how the machine knows the agent's package; "" where it does not. A question
// that was cut off says nothing.
func (s *Source) stateOf(ctx context.Context, p packager) (string, error) {
	out, err := s.packages(ctx, p.state, component.ArcPackage)
	if e, ok := errors.AsType[*packagerError](err); ok && e.code == noPackage {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if state := strings.TrimSpace(out); state != p.absent {
		return line(state), nil
	}
	return "", nil
}

// noPackage is the exit code with which dpkg-query and rpm --query say that they know no
// such package.
const noPackage = 1

// packagerError is a package manager that did not do what it was called for.
type packagerError struct {
	program string
	code    int
	said    string
}

// Error shows what it said.
func (e *packagerError) Error() string {
	return fmt.Sprintf("%s ended with exit code %d: %s", e.program, e.code, e.said)
}

// packages runs a package manager: nobody is there to answer its questions.
func (s *Source) packages(ctx context.Context, command []string, args ...string) (string, error) {
	args = append(append([]string{}, command[1:]...), args...)
	out, err := s.host.Run(ctx, host.Command{Path: command[0], Args: args,
		Env: []string{"DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}})
	if e, ok := errors.AsType[*host.ExitError](err); ok {
		err = &packagerError{path.Base(command[0]), e.Output.ExitCode, errorLine(string(e.Output.Stderr))}
	}
	return string(out.Stdout), err
}

// withdrawPackage takes the agent away that berth installed, unless it is connected as
// somebody else's machine since. One that does not say how it is may be, but for one that
// never was installed whole.
func (s *Source) withdrawPackage(ctx context.Context, m *made, say func(string)) error {
	p, ok := packagers[m.Package.Packager]
	if !ok {
		return fmt.Errorf("%s: nothing is known of the package manager %q", MadePath, m.Package.Packager)
	}
	state, err := s.stateOf(ctx, p)
	if err != nil {
		return packageStays(err)
	}
	if state != "" {
		a, err := s.agent(ctx)
		switch {
		case err == nil && a.id() != "" && !SameResource(a.id(), m.Package.Deleted):
			m.Package = nil
			return errors.Join(fmt.Errorf("the package %s stays: the agent is connected as %s", component.ArcPackage, a.id()), s.save(m))
		case err != nil && m.Package.Done && !errors.Is(err, errNoAgent):
			return &exitcode.Error{Err: fmt.Errorf("the package %s stays: whether its agent is connected as somebody else's machine is not known: %w", component.ArcPackage, err),
				Remedy: "Look at the agent (systemctl status himdsd, azcmagent show), or take the package away (" + strings.Join(p.remove, " ") + " " + component.ArcPackage + "); then berth leave again."}
		}
		if _, err := s.packages(ctx, p.remove, component.ArcPackage); err != nil {
			return packageStays(err)
		}
		say("took the agent of Azure Arc away (package " + component.ArcPackage + ")")
	}
	m.Package = nil
	return s.save(m)
}

func packageStays(err error) error {
	return &exitcode.Error{Err: fmt.Errorf("take the package %s away: %w", component.ArcPackage, err), Remedy: "Look at what the package manager says; then berth leave again."}
}
