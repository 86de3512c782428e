package provision

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
)

// LastTimeline is that of the last run. underway tells of runs whose timeline is not there
// yet. Where there is none, the error says what is known of the run all the same.
func LastTimeline(h host.Host) (t *report.Timeline, underway []string, err error) {
	t, err = report.LoadTimeline(h, report.TimelinePath)
	for _, run := range []struct {
		does string
		find func(host.Host) (Progress, bool)
	}{{"provisioning", Underway}, {"applying", Applying}} {
		if p, ok := run.find(h); ok {
			underway = append(underway, fmt.Sprintf("%s %s; the timeline is that of the run before", run.does, p))
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return t, underway, err
	}
	last, err := LastResult(h)
	if err != nil {
		return nil, underway, err
	}
	return nil, underway, fmt.Errorf("there is no timeline (%s); of provisioning: %s", report.TimelinePath, last)
}
