package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/provision"
	"github.com/berth-dev/berth/internal/report"
)

// standing is what status prints as JSON. Its keys are part of the interface.
type standing struct {
	Version    string           `json:"version"`
	InstanceID string           `json:"instanceID,omitempty"`
	Provision  provision.Last   `json:"provision"`
	Units      []unitStanding   `json:"units"`
	Timeline   *report.Timeline `json:"lastRun,omitempty"`
}

type unitStanding struct {
	Name    string `json:"name"`
	Active  string `json:"active"`
	Sub     string `json:"sub,omitempty"`
	Enabled string `json:"enabled,omitempty"`
	Since   string `json:"since,omitempty"`
}

var nodeUnits = []string{report.ServiceUnit, "containerd.service", "kubelet.service"}

func (e *env) status() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "status", Short: "Print how this machine stands: last result, units", Args: e.noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf(output, "text", "json", "yaml"); err != nil {
				return e.usage(c, err)
			}
			h, err := e.open("/")
			if err != nil {
				return err
			}
			s, err := stand(c.Context(), h)
			if err != nil {
				return err
			}
			if output == "text" {
				_, err = fmt.Fprint(e.out, s.text())
				return err
			}
			return encode(e.out, output, s)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "print as `FORMAT`: text, json or yaml")
	return c
}

func stand(ctx context.Context, h host.Host) (standing, error) {
	last, err := provision.LastResult(h)
	if err != nil {
		return standing{}, err
	}
	s := standing{Version: Version(), InstanceID: provision.InstanceID(h), Provision: last}
	for _, u := range nodeUnits {
		s.Units = append(s.Units, unitOf(ctx, h, u))
	}
	if t, err := report.LoadTimeline(h, report.TimelinePath); err == nil {
		t.Spans = nil // `berth timeline` shows them
		s.Timeline = t
	}
	return s, nil
}

func unitOf(ctx context.Context, h host.Systemd, name string) unitStanding {
	s, err := h.Unit(ctx, name)
	if errors.Is(err, host.ErrNoSystemd) {
		return unitStanding{Name: name, Active: "unknown", Sub: host.ErrNoSystemd.Error()}
	}
	if err != nil {
		return unitStanding{Name: name, Active: "unknown", Sub: err.Error()}
	}
	if s.LoadState != "loaded" {
		return unitStanding{Name: name, Active: s.LoadState}
	}
	u := unitStanding{Name: name, Active: s.ActiveState, Sub: s.SubState, Enabled: s.UnitFileState}
	if !s.ActiveEnter.IsZero() {
		u.Since = report.SystemdTime(s.ActiveEnter)
	}
	return u
}

func (s standing) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "berth %s, instance %s\n", s.Version, or(s.InstanceID, "unknown"))
	fmt.Fprintf(&b, "provisioning: %s\n", s.Provision)
	for _, u := range s.Units {
		fmt.Fprintf(&b, "%-28s %s", u.Name, u.Active)
		if u.Sub != "" {
			fmt.Fprintf(&b, " (%s)", u.Sub)
		}
		if u.Since != "" {
			b.WriteString(" since " + u.Since)
		}
		b.WriteByte('\n')
	}
	if t := s.Timeline; t != nil {
		fmt.Fprintf(&b, "last run: %s, %s, exit code %d\n", t.Command, report.SystemdTime(t.Start), t.ExitCode)
	}
	return b.String()
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
