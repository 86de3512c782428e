package report

import (
	"fmt"
	"time"
)

// Lines tell a person what came of a join; why it failed not.
func (j *Join) Lines() []string {
	var lines []string
	for _, n := range j.Notes {
		lines = append(lines, "note: "+n.Path+": "+n.Reason)
	}
	for _, l := range []struct {
		texts       []string
		begin, then string
	}{
		{j.Unhandled, "not acted on: ", ""},
		{j.Unverified, "warning: ", " came without a digest"},
		{j.Left, "left alone: ", ""},
		{j.Kept, "kept: ", ""},
	} {
		for _, text := range l.texts {
			lines = append(lines, l.begin+text+l.then)
		}
	}
	if j.Failure != nil {
		return lines
	}
	did := Count(j.Changes, "change")
	if j.Changes == 0 {
		did = "no changes"
	}
	return append(lines, fmt.Sprintf("%s is %s, a node of %s: %s in %s", j.Node, j.Milestone, j.Server, did, j.End.Sub(j.Start).Round(time.Millisecond)))
}
