package azure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/google/uuid"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// MadePath is the file that says what berth has made in Azure.
const MadePath = paths.StateDir + "/azure.json"

// damagedRemedy is for a file that can't be read: nobody but a person knows what it told of.
const damagedRemedy = "Delete in Azure what berth made for this machine (the machine of Azure Arc, tag " + component.RegistrationTag +
	", and the role assignments of its identity), run azcmagent disconnect --force-local-only, and then delete the file."

// made is what berth has made in Azure for this machine, or was about to: each thing is
// in the file before Azure is asked for it, so that whoever is cut off leaves nothing
// that nobody knows of. A machine that got another name has a note for each.
type made struct {
	Notes []*note `json:"notes,omitempty"`
	// Package is the agent's, where it is berth's.
	Package *installed `json:"package,omitempty"`
}

// note is one machine of Azure Arc, and the roles that its identity was given.
type note struct {
	// ID is the machine's. Made: berth registered it, or was about to; it is the one that
	// carries Tag, or whose identity is Principal.
	ID        string `json:"id"`
	Made      bool   `json:"made,omitempty"`
	Tag       string `json:"tag,omitempty"`
	Principal string `json:"principal,omitempty"`
	// Owed: the machine's identity has yet to be seen with its role.
	Owed bool `json:"owed,omitempty"`
	// Assignments are of roles; resource ids.
	Assignments []string `json:"assignments,omitempty"`
	// By is who made them, and by which way; a secret is not kept.
	By      *desired.AzureIdentity `json:"by"`
	Manager string                 `json:"manager"`
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

// of is the note of a machine; one that nobody made is added.
func (m *made) of(id string) *note {
	for _, n := range m.Notes {
		if SameResource(n.ID, id) {
			return n
		}
	}
	n := &note{ID: id}
	m.Notes = append(m.Notes, n)
	return n
}

// tidy drops notes of nothing.
func (m *made) tidy() {
	m.Notes = slices.DeleteFunc(m.Notes, func(n *note) bool { return !n.Made && len(n.Assignments) == 0 })
}

// parseMade reads the file. One that can't be read whole is refused: what it tells of
// would stay in Azure with nobody knowing.
func parseMade(text []byte) (*made, error) {
	m := &made{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(m)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is text after it")
		}
	}
	for _, n := range m.Notes {
		if err == nil && (n == nil || n.ID == "" || n.By == nil) {
			err = errors.New("a note does not say of what it is, or who made it")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", MadePath, err)
	}
	for _, n := range m.Notes {
		n.By.ClientSecret = "" // none is kept
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
func (n *note) by(r *component.ArcRegistration) {
	who := *r.By
	who.ClientSecret = ""
	n.By, n.Manager, n.Way = &who, r.Manager, wayOf(r.Via)
}

// begin notes that the machine is about to be registered. Whoever takes its name
// meanwhile does not carry the tag.
func (n *note) begin() { n.Made, n.Tag, n.Principal = true, uuid.NewString(), "" }

// is says whether a machine in Azure is the one that the note is of.
func (n *note) is(m *Machine) bool {
	return n.Made && (n.Tag != "" && m.Tags[component.RegistrationTag] == n.Tag || n.Principal != "" && m.PrincipalID == n.Principal)
}

func (n *note) gave(assignment string) bool {
	return slices.ContainsFunc(n.Assignments, func(id string) bool { return SameResource(id, assignment) })
}

func (n *note) forget(assignment string) {
	n.Assignments = slices.DeleteFunc(n.Assignments, func(id string) bool { return SameResource(id, assignment) })
}

// save keeps it; nothing is no file.
func (s *Source) save(m *made) error {
	m.tidy()
	if len(m.Notes) == 0 && m.Package == nil {
		return ledger.RemoveIfThere(s.host, MadePath)
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := s.stateDir(); err != nil {
		return err
	}
	return host.WriteFile(s.host, MadePath, append(text, '\n'), host.Attributes{Mode: 0o600})
}

// stateDir is there afterwards.
func (s *Source) stateDir() error {
	if _, err := host.MkdirAll(s.host, path.Dir(paths.StateDir)); err != nil {
		return err
	}
	info, err := ledger.Lstat(s.host, paths.StateDir)
	if err != nil || info != nil {
		return err
	}
	return s.host.Mkdir(paths.StateDir, 0o700)
}
