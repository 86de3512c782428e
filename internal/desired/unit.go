package desired

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
	// Triggers are paths whose change restarts the unit.
	Triggers []string `json:"triggers,omitempty"`
	// ReloadTriggers are paths whose change makes the running unit reload; one that
	// can not reload is restarted.
	ReloadTriggers []string `json:"reloadTriggers,omitempty"`
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
	if u.Enablement == AnyEnablement && u.Activation == AnyActivation {
		return errors.New("a unit that may be in any state says nothing")
	}
	if stem, _, _ := strings.Cut(u.Name, "."); strings.HasSuffix(stem, "@") && u.Activation != AnyActivation {
		return fmt.Errorf("%s is a template: only its instances run", u.Name)
	}
	for _, t := range slices.Concat(u.Triggers, u.ReloadTriggers) {
		if err := cleanAbs(t); err != nil {
			return fmt.Errorf("trigger: %w", err)
		}
	}
	return nil
}
