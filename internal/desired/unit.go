package desired

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/unitname"
)

// Enablement says whether a unit starts at boot.
type Enablement string

// Activation says whether a unit runs now.
type Activation string

const (
	// Enabled means that the links that the unit's [Install] section asks for exist.
	Enabled Enablement = "enabled"
	// Disabled means that there are no such links.
	Disabled Enablement = "disabled"
	// AnyEnablement leaves it as it is.
	AnyEnablement Enablement = ""

	// Started means active, and started with the current definition and triggers.
	Started Activation = "started"
	// Stopped means not active.
	Stopped Activation = "stopped"
	// AnyActivation leaves it as it is.
	AnyActivation Activation = ""
)

// Unit is a systemd unit's state. Its definition and drop-ins are File
// resources; a change of either restarts it, as does a change of a trigger.
// The order in which units start is given by After.
type Unit struct {
	Base
	Name       string     `json:"name"`
	Enablement Enablement `json:"enablement,omitempty"`
	Activation Activation `json:"activation,omitempty"`
	// Mentioned means that the contract only names the unit: that it is enabled and
	// started is the default, and the Node's condition does not report on it.
	Mentioned bool `json:"mentioned,omitempty"`
	// Optional: the machine does without it where it does not start, and the run says so.
	Optional bool `json:"optional,omitempty"`
	// Triggers are paths whose change restarts the unit.
	Triggers []string `json:"triggers,omitempty"`
	// ReloadTriggers are paths whose change makes the running unit reload; one that
	// can not reload is restarted. With them alone a unit may be in any state.
	ReloadTriggers []string `json:"reloadTriggers,omitempty"`
	// Unread are, by trigger, regular expressions of text that a running unit has no
	// use for: a change of such text alone restarts nothing.
	Unread map[string][]string `json:"unread,omitempty"`
	// ReadAhead are files that the unit reads from the disk when it starts: its program and
	// what that runs.
	ReadAhead []string `json:"readAhead,omitempty"`
}

// UnitID names a unit.
func UnitID(name string) ID { return ID("unit:" + name) }

// ID implements Resource.
func (u *Unit) ID() ID { return UnitID(u.Name) }

// Kind implements Resource.
func (u *Unit) Kind() string { return "unit" }

// Validate implements Resource.
func (u *Unit) Validate() error {
	if strings.ContainsAny(u.Name, "/\x00 ") || !strings.Contains(u.Name, ".") {
		return fmt.Errorf("%q is not a unit name", u.Name)
	}
	if u.Enablement == AnyEnablement && u.Activation == AnyActivation && len(u.ReloadTriggers) == 0 {
		return errors.New("a unit that may be in any state says nothing")
	}
	if unitname.IsTemplate(u.Name) && u.Activation != AnyActivation {
		return fmt.Errorf("%s is a template: only its instances run", u.Name)
	}
	for _, t := range slices.Concat(u.Triggers, u.ReloadTriggers) {
		if err := cleanAbs(t); err != nil {
			return fmt.Errorf("trigger: %w", err)
		}
	}
	for _, f := range u.ReadAhead {
		if err := cleanAbs(f); err != nil {
			return fmt.Errorf("file to read ahead: %w", err)
		}
	}
	return u.validateUnread()
}

func (u *Unit) validateUnread() error {
	for _, expressions := range u.Unread {
		for _, e := range expressions {
			if _, err := regexp.Compile(e); err != nil {
				return fmt.Errorf("text that %s does not read: %w", u.Name, err)
			}
		}
	}
	return nil
}
