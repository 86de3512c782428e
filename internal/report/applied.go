package report

import (
	"fmt"
	"time"

	"github.com/berth-dev/berth/internal/converge"
)

// Applied says what came of an application, in lines.
func Applied(res *converge.Result, took time.Duration) string {
	s := fmt.Sprintf("applied %s in %s", Count(len(res.Plan.Actions), "change"), took.Round(time.Millisecond))
	if res.Plan.Empty() {
		s = "no changes"
	}
	if c := ToConfirm(res); c != "" {
		s += "\n" + c
	}
	for _, u := range res.Unverified {
		s += "\nwarning: " + u + " came without a digest"
	}
	for _, m := range res.Plan.Remarks {
		s += "\nleft alone: " + m
	}
	for _, m := range res.Plan.Kept {
		s += "\nkept: " + m
	}
	return s
}

// ToConfirm says how long a person has to confirm what was done; "" where nobody has to.
func ToConfirm(res *converge.Result) string {
	switch {
	case res == nil || res.Until.IsZero():
		return ""
	case res.Left != "":
		return fmt.Sprintf("run berth confirm within %s, or the last good configuration comes back", res.Left)
	}
	return fmt.Sprintf("run berth confirm until %s, or the last good configuration comes back", SystemdTime(res.Until))
}
