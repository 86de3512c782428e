package provision

import (
	"context"
	"fmt"
	"strconv"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// restarts is how often systemd may start the unit again by itself before the
// run counts as killed.
const restarts = 4

// Ending is what systemd tells a service's ExecStopPost of its end: the
// variables SERVICE_RESULT, EXIT_CODE and EXIT_STATUS.
type Ending struct{ ServiceResult, ExitCode, ExitStatus string }

// ResultIfMissing runs when the unit has stopped. A run that was killed left no
// result; unless systemd will start it again, this writes one in its place. It
// says what it did.
func ResultIfMissing(ctx context.Context, h host.Host, config, version string, e Ending) (string, error) {
	instance := InstanceID(h)
	bake := peek(h, config).Bake
	a, err := lastAttempt(h, instance, bake)
	if err != nil {
		return "", err
	}
	if a.ended {
		return "the result is there", nil
	}
	s, err := h.Unit(ctx, report.ServiceUnit)
	if err != nil {
		return "", fmt.Errorf("look at the unit: %w", err)
	}
	if e.ServiceResult != "success" && s.NRestarts < restarts {
		return fmt.Sprintf("no result yet: the run ended by %s %s and starts again", e.ExitCode, e.ExitStatus), nil
	}
	return "wrote the result", report.WriteResult(ctx, h, killed(ctx, h, e, instance, version), bake)
}

func killed(ctx context.Context, h host.Host, e Ending, instance, version string) report.Document {
	c := report.ByNumber(report.CodeKilled)
	if e.ServiceResult == "success" { // told to stop before it could say so
		c = report.ByNumber(report.CodeInterrupted)
	}
	d := report.Document{
		CSEStatus: nodeconfigutils.CSEStatus{
			ExitCode: strconv.Itoa(c.Number),
			Error:    fmt.Sprintf("provisioning ended without a result: %s (%s %s)", e.ServiceResult, e.ExitCode, e.ExitStatus),
		},
		Berth: &report.Details{Version: version, InstanceID: instance, Code: c.Name, Doing: "provision", Hint: c.Hint},
	}
	report.ReadBoot(ctx, h).Into(&d)
	return d
}
