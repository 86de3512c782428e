package unitcheck

import (
	"fmt"
	"strings"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/host"
)

// ConditionType is the published one.
const ConditionType core.NodeConditionType = "SystemdUnitsReady"

// The published reasons.
const (
	reasonHealthy     = "AllUnitsHealthy"
	reasonProgressing = "ProgressingUnits"
	reasonUnhealthy   = "UnhealthyUnits"
)

// Unit is what the applied document says of a unit.
type Unit struct {
	Name string
	// Enable is the document's word; a unit that it brings is enabled if it does not
	// say otherwise, and of one that it only mentions it says nothing.
	Enable *bool
	// Stop: the document has the unit stopped, though it may be enabled.
	Stop bool
}

func (u Unit) enabled() bool { return u.Enable != nil && *u.Enable }

func (u Unit) disabled() bool { return u.Enable != nil && !*u.Enable }

// finding is what is wrong with a unit; none with a text is a unit that is fine.
type finding struct {
	text string
	// progressing: it may become right by itself.
	progressing bool
}

// byTheRules goes by the published rules. since is how long the unit is in its state.
func byTheRules(u Unit, s host.UnitStatus, since, stuck time.Duration) finding {
	if s.LoadState != "loaded" {
		return u.wrongIf(u.enabled(), "is not loaded (%s)", s.LoadState)
	}
	switch s.ActiveState {
	case "failed":
		return u.wrongIf(u.enabled(), "has failed (%s)", s.Result)
	case "activating", "deactivating":
		if since < stuck || strings.HasPrefix(s.SubState, "auto-restart") {
			return finding{text: u.Name + " is " + s.ActiveState, progressing: true}
		}
		return u.wrongIf(true, "is %s for more than %s", s.ActiveState, stuck)
	case "inactive":
		rests := s.SubState == "dead" && (s.ServiceType == "oneshot" || len(s.TriggeredBy) > 0)
		return u.wrongIf(u.enabled() && !rests && !u.Stop, "is inactive (%s)", s.SubState)
	}
	return u.wrongIf(u.disabled(), "is %s although it is disabled", s.ActiveState)
}

func (u Unit) wrongIf(wrong bool, format string, args ...any) finding {
	if !wrong {
		return finding{}
	}
	return finding{text: u.Name + " " + fmt.Sprintf(format, args...)}
}

// condition draws the condition from what was found, in the units' order.
func condition(found []finding) core.NodeCondition {
	var wrong, progressing []string
	for _, f := range found {
		switch {
		case f.text == "":
		case f.progressing:
			progressing = append(progressing, f.text)
		default:
			wrong = append(wrong, f.text)
		}
	}
	c := core.NodeCondition{Type: ConditionType, Status: core.ConditionTrue, Reason: reasonHealthy, Message: "all systemd units are healthy"}
	switch {
	case len(wrong) > 0:
		c.Status, c.Reason, c.Message = core.ConditionFalse, reasonUnhealthy, strings.Join(wrong, "; ")
	case len(progressing) > 0:
		c.Reason, c.Message = reasonProgressing, strings.Join(progressing, "; ")
	}
	return c
}
