package unitcheck

import (
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/host"
)

var yes, no = true, false

func TestRules(t *testing.T) {
	own, only := Unit{Name: "a.service", Enable: &yes}, Unit{Name: "a.service"}
	stopped, off := Unit{Name: "a.service", Enable: &yes, Stop: true}, Unit{Name: "a.service", Enable: &no}
	loaded := func(active, sub string) host.UnitStatus {
		return host.UnitStatus{LoadState: "loaded", ActiveState: active, SubState: sub, Result: "exit-code"}
	}
	oneshot, triggered := loaded("inactive", "dead"), loaded("inactive", "dead")
	oneshot.ServiceType, triggered.TriggeredBy = "oneshot", []string{"a.timer"}
	odd := oneshot
	odd.SubState = "dead-before-auto-restart"
	absent, masked := host.UnitStatus{LoadState: "not-found", ActiveState: "inactive"}, host.UnitStatus{LoadState: "masked", ActiveState: "inactive"}
	const young, old = time.Minute, 5 * time.Minute
	for name, tc := range map[string]struct {
		unit        Unit
		status      host.UnitStatus
		since       time.Duration
		want        string
		progressing bool
	}{
		"runs":                     {own, loaded("active", "running"), old, "", false},
		"reloads":                  {own, loaded("reloading", "reload"), old, "", false},
		"failed":                   {own, loaded("failed", "failed"), 0, "a.service has failed (exit-code)", false},
		"failed, disabled":         {off, loaded("failed", "failed"), 0, "", false},
		"failed, only mentioned":   {only, loaded("failed", "failed"), 0, "", false},
		"starts":                   {own, loaded("activating", "start"), young, "a.service is activating", true},
		"stuck":                    {own, loaded("activating", "start"), old, "a.service is activating for more than 5m0s", false},
		"stuck in stopping":        {off, loaded("deactivating", "stop-sigterm"), old, "a.service is deactivating for more than 5m0s", false},
		"is restarted for long":    {own, loaded("activating", "auto-restart"), old, "a.service is activating", true},
		"inactive":                 {own, loaded("inactive", "dead"), 0, "a.service is inactive (dead)", false},
		"inactive oneshot":         {own, oneshot, 0, "", false},
		"inactive, has a timer":    {own, triggered, 0, "", false},
		"oneshot not dead":         {own, odd, 0, "a.service is inactive (dead-before-auto-restart)", false},
		"inactive, disabled":       {off, loaded("inactive", "dead"), 0, "", false},
		"absent":                   {own, absent, 0, "a.service is not loaded (not-found)", false},
		"absent, disabled":         {off, absent, 0, "", false},
		"masked":                   {own, masked, 0, "a.service is not loaded (masked)", false},
		"active, disabled":         {off, loaded("active", "running"), 0, "a.service is active although it is disabled", false},
		"active, only mentioned":   {only, loaded("active", "exited"), 0, "", false},
		"inactive, only mentioned": {only, loaded("inactive", "dead"), 0, "", false},
		"absent, only mentioned":   {only, absent, 0, "", false},
		"stopped":                  {stopped, loaded("inactive", "dead"), 0, "", false},
		"active, stopped":          {stopped, loaded("active", "running"), 0, "", false},
		"failed, stopped":          {stopped, loaded("failed", "failed"), 0, "a.service has failed (exit-code)", false},
	} {
		if got := byTheRules(tc.unit, tc.status, tc.since, 5*time.Minute); got != (finding{tc.want, tc.progressing}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestCondition(t *testing.T) {
	wrong, slow, fine := finding{text: "a has failed"}, finding{text: "b is activating", progressing: true}, finding{}
	for _, tc := range []struct {
		found           []finding
		status          core.ConditionStatus
		reason, message string
	}{
		{[]finding{fine}, core.ConditionTrue, "AllUnitsHealthy", "all systemd units are healthy"},
		{[]finding{fine, slow, slow}, core.ConditionTrue, "ProgressingUnits", "b is activating; b is activating"},
		{[]finding{slow, wrong, fine, wrong}, core.ConditionFalse, "UnhealthyUnits", "a has failed; a has failed"},
	} {
		c := condition(tc.found)
		if c.Type != "SystemdUnitsReady" || c.Status != tc.status || c.Reason != tc.reason || c.Message != tc.message {
			t.Errorf("%+v", c)
		}
	}
}
