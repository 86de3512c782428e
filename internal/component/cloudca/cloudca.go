// Package cloudca has a machine trust the certificate authorities of a cloud that has its
// own: the cloud tells them, and a timer asks again, since they change while nodes live.
package cloudca

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/component/packetfilter"
	"github.com/berth-dev/berth/internal/component/trust"
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
)

// Names and paths.
const (
	Unit  = "berth-cloud-ca.service"
	Timer = "berth-cloud-ca.timer"
	// Prefix begins the name of each certificate.
	Prefix = "aks-cloud-ca-"

	unitDir = "/etc/systemd/system/"
	// daily and spread are when the cloud is asked, as published.
	daily, spread = "19:00", "300"
	// again is the pause after a try that failed: the next day is late for a new CA.
	again = "30min"
)

// IsLegacy says whether a region tells its certificates in one answer to everybody, as
// published: those of two clouds do. Others tell a list to who is opted in.
func IsLegacy(location string) bool {
	name := strings.ToLower(strings.Join(strings.Fields(location), ""))
	return strings.HasPrefix(name, "ussec") || strings.HasPrefix(name, "usnat")
}

// Anchors are the certificates. Their names come from their contents: another order of
// the cloud's answer changes nothing.
func Anchors(certificates []string) ([]desired.Resource, error) {
	var bundles [][]byte
	for _, c := range certificates {
		bundles = append(bundles, []byte(c))
	}
	rs, err := trust.Resources("x", bundles)
	if err != nil {
		return nil, fmt.Errorf("the cloud's certificates: %w", err)
	}
	for _, r := range rs {
		a := r.(*desired.TrustAnchor)
		a.Name = Prefix + desired.Text(a.PEM).Sum()[:16]
	}
	slices.SortFunc(rs, func(a, b desired.Resource) int { return strings.Compare(string(a.ID()), string(b.ID())) })
	return rs, nil
}

// Timers are what asks the cloud again. program is berth's own path; empty:
// packetfilter.Program.
func Timers(program string) []desired.Resource {
	service := plain(unitDir+Unit, unitfile.Text(
		unitfile.In("Unit", "Description", "Trust the certificate authorities of this machine's cloud", "After", "network-online.target", "Wants", "network-online.target"),
		unitfile.In("Service", "Type", "oneshot", "Restart", "on-failure", "RestartSec", again, "TimeoutStartSec", "10min",
			"ExecStart", unitfile.Word(cmp.Or(program, packetfilter.Program))+" node cloud-ca")))
	timer := plain(unitDir+Timer, unitfile.Text(
		unitfile.In("Unit", "Description", "Ask the cloud daily for its certificate authorities"),
		unitfile.In("Timer", "OnCalendar", daily, "RandomizedDelaySec", spread, "Persistent", "true"),
		unitfile.In("Install", "WantedBy", "timers.target")))
	return []desired.Resource{service, timer, &desired.Unit{
		Base: desired.Base{After: []desired.ID{service.ID(), timer.ID()}}, Name: Timer,
		Enablement: desired.Enabled, Activation: desired.Started, Triggers: []string{unitDir + Unit},
	}}
}

func plain(p, text string) *desired.File {
	return &desired.File{Path: p, Content: desired.Text(text), Mode: 0o644, Life: desired.Managed}
}
