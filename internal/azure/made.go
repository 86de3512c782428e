package azure

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// MadePath is the file that says what berth has made in Azure.
const MadePath = ledger.StateDir + "/azure.json"

// made is what berth has made in Azure for this machine, or was about to: each thing is
// in the file before Azure is asked for it, so that whoever is cut off leaves nothing
// that nobody knows of.
type made struct {
	// Machine is the machine of Azure Arc, Assignments are of roles; resource ids.
	Machine     string   `json:"machine,omitempty"`
	Assignments []string `json:"assignments,omitempty"`
	// By is who made them, and by which way; a secret is not kept.
	By      *desired.AzureIdentity `json:"by,omitempty"`
	Manager string                 `json:"manager,omitempty"`
	Way     way                    `json:"way"`
}

// way is a desired.Egress that is written out. The file is for root alone.
type way struct {
	HTTP    string   `json:"http,omitempty"`
	HTTPS   string   `json:"https,omitempty"`
	NoProxy []string `json:"noProxy,omitempty"`
	CAs     []string `json:"cas,omitempty"`
}

func (w way) egress() *desired.Egress {
	if w.HTTP == "" && w.HTTPS == "" && len(w.CAs) == 0 {
		return nil
	}
	return &desired.Egress{HTTPProxy: desired.Secret(w.HTTP), HTTPSProxy: desired.Secret(w.HTTPS), NoProxy: w.NoProxy, CAs: w.CAs}
}

func wayOf(e *desired.Egress) (w way) {
	if e != nil {
		w = way{e.HTTPProxy.Reveal(), e.HTTPSProxy.Reveal(), e.NoProxy, e.CAs}
	}
	return w
}

func (m *made) empty() bool { return m.Machine == "" && len(m.Assignments) == 0 }

// parseMade reads the file. One that can't be read has nothing that berth could undo.
func parseMade(text []byte) (*made, error) {
	m := &made{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("%s: %w", MadePath, err)
	}
	return m, nil
}

func (s *Source) made() (*made, error) {
	text, ok, err := ledger.ReadFile(s.host, MadePath)
	if err != nil || !ok {
		return &made{}, err
	}
	return parseMade(text)
}

// by says who makes what comes.
func (m *made) by(r *component.ArcRegistration) {
	who := *r.By
	who.ClientSecret = ""
	m.By, m.Manager, m.Way = &who, r.Manager, wayOf(r.Via)
}

func (m *made) forget(assignment string) {
	m.Assignments = slices.DeleteFunc(m.Assignments, func(id string) bool { return SameResource(id, assignment) })
}

// save keeps it; nothing is no file.
func (s *Source) save(m *made) error {
	if m.empty() {
		return ledger.RemoveIfThere(s.host, MadePath)
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := host.MkdirAll(s.host, path.Dir(ledger.StateDir)); err != nil {
		return err
	}
	if info, err := ledger.Lstat(s.host, ledger.StateDir); err != nil {
		return err
	} else if info == nil {
		if err := s.host.Mkdir(ledger.StateDir, 0o700); err != nil {
			return err
		}
	}
	return host.WriteFile(s.host, MadePath, append(text, '\n'), host.Attributes{Mode: 0o600})
}
