package aks

import (
	"errors"
	"strings"
	"testing"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/component/imageunits"
	"github.com/berth-dev/berth/internal/component/nics"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
)

// TestMoreInterfaces: an interface is known by the hardware address that the cloud tells, by
// its name where nothing tells, and a machine that has too few is refused.
func TestMoreInterfaces(t *testing.T) {
	const first, second = "00:0d:3a:00:00:01", "00:0d:3a:00:00:02"
	for name, c := range map[string]struct {
		has     []string
		match   string
		refused bool
	}{
		"nothing is known":      {nil, "Name=eth1\n", false},
		"the cloud tells":       {[]string{first, second}, "MACAddress=" + second + "\n", false},
		"more than asked for":   {[]string{first, second, second}, "MACAddress=" + second + "\n", false},
		"too few":               {[]string{first}, "", true},
		"as known before":       {[]string{"", second}, "MACAddress=" + second + "\n", false},
		"not known before":      {[]string{""}, "Name=eth1\n", false},
		"known by name, before": {[]string{"", ""}, "Name=eth1\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := sample(t, "minimal.json")
			cfg.NetworkConfig = &aksnodeconfigv1.NetworkConfig{StandardSecondaryNicCount: 1}
			facts := machine
			facts.Interfaces = c.has
			st, err := Translate(decoded(t, cfg), facts)
			var e *exitcode.Error
			if c.refused {
				if !errors.As(err, &e) || e.Number != 243 || e.At != "network_config.standard_secondary_nic_count" {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if text := string(golden.File(t, st, nics.File(1)).Content.Data()); !strings.Contains(text, c.match) {
				t.Errorf("no %q in\n%s", c.match, text)
			}
		})
	}
}

// TestLocalDNSExporterLabel: whoever collects figures finds the node by its label, which is
// there where both are: the exporter of the image, and the name server that has figures.
func TestLocalDNSExporterLabel(t *testing.T) {
	for name, c := range map[string]struct {
		units          []string
		server, member bool
		want           bool
	}{
		"both":           {imageunits.Names(), true, true, true},
		"no exporter":    {[]string{imageunits.NodeExporter}, true, true, false},
		"no name server": {imageunits.Names(), false, true, false},
		"an image":       {imageunits.Names(), true, false, false},
	} {
		cfg, f := sample(t, "minimal.json"), machine
		f.ImageUnits = c.units
		cfg.PreProvisionOnly = !c.member
		cfg.LocalDnsProfile = &aksnodeconfigv1.LocalDnsProfile{EnableLocalDns: c.server}
		st := translate(t, cfg, f)
		got := false
		for _, r := range st.Resources {
			file, ok := r.(*desired.File)
			got = got || ok && strings.Contains(string(file.Content.Data()), imageunits.ExporterLabel+"="+imageunits.ExporterSwitch)
		}
		if got != c.want {
			t.Errorf("%s: the label is there: %v", name, got)
		}
	}
}
