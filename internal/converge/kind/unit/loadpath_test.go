package unit

import (
	"testing"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// A planned definition takes the place of the one that systemd has read where it is stronger: an
// instance's own is, wherever its template's lies.
func TestPlannedFragment(t *testing.T) {
	const own, template, etcTemplate = "/usr/lib/systemd/system/w@a.service", "/usr/lib/systemd/system/w@.service", "/etc/systemd/system/w@.service"
	for name, c := range map[string]struct{ read, planned, target, want string }{
		"template, own planned":               {template, own, "", own},
		"template of the administrator, own":  {etcTemplate, own, "", own},
		"own, template of the administrator":  {own, etcTemplate, "", own},
		"template, that of the administrator": {template, etcTemplate, "", etcTemplate},
		"template, own masked":                {template, own, noDevice, template},
	} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			h.Put(c.read, "[Service]\nExecStart=/bin/true\n", 0o644)
			v := kind.NewView(kind.Options{Contents: &kind.Contents{}}, nil, h, &desired.State{}, &ledger.Ledger{})
			q := &kind.Change{Type: ledger.File, Path: c.planned, Target: c.target}
			v.Expect(q)
			got, err := loadPath{v}.fragment("w@a.service", c.read)
			if err != nil || got != c.want {
				t.Errorf("%s, %v, want %s", got, err, c.want)
			}
		})
	}
}
