package report

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
)

// TestAppliedOnTrial: how long there is goes by running time; the clock is named only
// where nothing else is known.
func TestAppliedOnTrial(t *testing.T) {
	until := time.Date(2026, 11, 22, 8, 5, 0, 0, time.UTC)
	for says, res := range map[string]*converge.Result{
		"\nrun berth confirm within 4m58s, or the last good configuration comes back":                     {Until: until, Left: "4m58s"},
		"\nrun berth confirm until " + SystemdTime(until) + ", or the last good configuration comes back": {Until: until},
	} {
		res.Plan = &converge.Plan{}
		if got := Applied(res, time.Second); got != "no changes"+says {
			t.Error(got)
		}
	}
}

// TestJoinLines: what is not in force, or was kept, is told whatever came of the join; how it
// stands only where it did not fail.
func TestJoinLines(t *testing.T) {
	j := Join{Node: "n1", Milestone: "ready", Server: "https://k", Notes: []desired.FieldNote{{Path: "a.b", Reason: "off"}}, Kept: []string{"/etc/x"}, End: time.Unix(2, 0), Start: time.Unix(1, 0)}
	told := []string{"note: a.b: off", "kept: /etc/x"}
	stands := "n1 is ready, a node of https://k: no changes in 1s"
	if d := cmp.Diff(append(slices.Clone(told), stands), j.Lines()); d != "" {
		t.Error(d)
	}
	j.Failure = &JoinFailure{}
	if d := cmp.Diff(told, j.Lines()); d != "" {
		t.Error(d)
	}
}

// TestFields: of many fields the first are named.
func TestFields(t *testing.T) {
	for fields, want := range map[string]string{"": "", "a, b, c": "a, b, c", "a, b, c, d, e": "a, b, c and 2 more"} {
		if got := (Failure{Field: fields}).Fields(); got != want {
			t.Errorf("%q: %q", fields, got)
		}
	}
}
