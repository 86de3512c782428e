package nodedns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/component/localdns"
	"github.com/berth-dev/berth/internal/component/resolver"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/unitname"
)

const (
	// plainList is the machine's list where systemd-resolved keeps none.
	plainList = "/etc/resolv.conf"
	// resolvedDropIn makes the server the first of systemd-resolved's list. It lasts
	// until the next boot at most.
	resolvedDropIn = "/run/systemd/resolved.conf.d/70-localdns.conf"
	resolvedUnit   = unitname.Resolved
)

// maxUpstream is how many servers CoreDNS forwards to.
const maxUpstream = 15

// upstream are the name servers of the machine besides its own. Those on the loopback
// interface would ask this one.
func upstream(h host.FS) ([]netip.Addr, error) {
	for _, list := range []string{resolver.List, plainList} {
		text, err := h.ReadFile(list)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the machine's name servers: %w", err)
		}
		if out := servers(string(text)); len(out) > 0 {
			return out[:min(len(out), maxUpstream)], nil
		}
	}
	return nil, fmt.Errorf("neither %s nor %s names a name server that can be forwarded to", resolver.List, plainList)
}

// servers are the lines "nameserver ADDRESS" of resolv.conf(5).
func servers(text string) (out []netip.Addr) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		a, err := netip.ParseAddr(fields[1])
		if err != nil || a.Zone() != "" || a.IsLoopback() || slices.Contains(localdns.Addresses(), a) || slices.Contains(out, a) {
			continue
		}
		out = append(out, a)
	}
	return out
}

// point makes the machine ask the server first, and the others where it does not answer.
func (s Server) point(ctx context.Context) error {
	resolved, err := s.resolved()
	if err != nil {
		return err
	}
	if !resolved {
		return s.rewrite(func(text string) string {
			return ownLine() + unmarked(text)
		})
	}
	if _, err := host.MkdirAll(s.Host, path.Dir(resolvedDropIn)); err != nil {
		return fmt.Errorf("make the directory of %s: %w", resolvedDropIn, err)
	}
	text := "# Written by berth.\n[Resolve]\nDNS=" + localdns.NodeAddress.String() + "\n"
	if err := host.WriteFile(s.Host, resolvedDropIn, []byte(text), readable); err != nil {
		return fmt.Errorf("write %s: %w", resolvedDropIn, err)
	}
	return s.restartResolved(ctx)
}

// unpoint undoes point, whichever way that went.
func (s Server) unpoint(ctx context.Context) error {
	err := s.Host.Remove(resolvedDropIn)
	switch {
	case err == nil:
		err = s.restartResolved(ctx)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	return errors.Join(err, s.rewrite(unmarked))
}

func (s Server) resolved() (bool, error) {
	_, err := s.Host.Lstat(resolver.List)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// restartResolved: a server that crashes again and again has it restarted more often than
// systemd lets units start, and the machine would be left without a resolver.
func (s Server) restartResolved(ctx context.Context) error {
	if err := s.Host.ResetFailed(ctx, resolvedUnit); err != nil {
		return fmt.Errorf("reset the start limit of %s: %w", resolvedUnit, err)
	}
	if err := s.Host.RestartUnit(ctx, resolvedUnit); err != nil {
		return fmt.Errorf("restart %s: %w", resolvedUnit, err)
	}
	return nil
}

// rewrite changes the plain list; one that is a link is its owner's.
func (s Server) rewrite(change func(string) string) error {
	info, err := s.Host.Lstat(plainList)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsRegular() {
		return nil
	}
	text, readErr := s.Host.ReadFile(plainList)
	if err := errors.Join(err, readErr); err != nil {
		return fmt.Errorf("read %s: %w", plainList, err)
	}
	changed := change(string(text))
	if changed == string(text) {
		return nil
	}
	attributes := host.Attributes{Mode: info.Mode.Perm(), UID: info.UID, GID: info.GID}
	if err := host.WriteFile(s.Host, plainList, []byte(changed), attributes); err != nil {
		return fmt.Errorf("write %s: %w", plainList, err)
	}
	return nil
}

func ownLine() string { return "nameserver " + localdns.NodeAddress.String() + "\n" }

// unmarked is the text without the line that point made.
func unmarked(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line != ownLine() {
			b.WriteString(line)
		}
	}
	return b.String()
}
