package reconcile

import (
	"testing"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/desired"
)

func TestPolicy(t *testing.T) {
	d := config.Drift{Policy: config.Repair, Paths: []config.PathPolicy{
		{Path: "/etc", Policy: config.Report}, {Path: "/etc/own", Policy: config.Repair}, {Path: "/etc/own/not", Policy: config.Ignore},
		{Path: "x.service", Policy: config.Ignore},
	}}
	for id, c := range map[desired.ID]struct {
		names []string
		want  config.Policy
	}{
		"file:/opt/x":              {[]string{"/opt/x"}, config.Repair},
		"file:/etc/x":              {[]string{"/etc/x"}, config.Report},
		"file:/etc":                {[]string{"/etc"}, config.Report},
		"file:/etcetera":           {[]string{"/etcetera"}, config.Repair},
		"file:/etc/own/x":          {[]string{"/etc/own/x"}, config.Repair},
		"file:/etc/own/not":        {[]string{"/etc/own/not"}, config.Ignore},
		"unit:x.service":           {nil, config.Ignore},
		"unit:y.service":           {nil, config.Repair},
		"artifact:two":             {[]string{"/opt/a", "/etc/b"}, config.Report},
		"artifact:three":           {[]string{"/opt/a", "/etc/b", "/etc/own/not/c"}, config.Ignore},
		"file:/etc/gone-from-here": {nil, config.Report},
		"block:/etc/own/not#proxy": {nil, config.Ignore},
		"block:/etc/own#not":       {nil, config.Repair},
	} {
		if got := policyOf(d, id, c.names); got != c.want {
			t.Errorf("%s: %s, want %s", id, got, c.want)
		}
	}
}
