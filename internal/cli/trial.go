package cli

import (
	"context"
	"encoding/json"
	"os"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/documents"
	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/swap"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/report"
)

// trial is what the engine needs to try a change.
func (p *parts) trial() *converge.Trial {
	facts, err := json.Marshal(p.gathered)
	if err != nil {
		panic("facts have no JSON: " + err.Error())
	}
	program, _ := os.Executable() // what runs has a path; only a broken /proc hides it
	return &converge.Trial{
		Contract: trial.Contract{Document: p.document, Facts: facts},
		State: func(_ context.Context, c *trial.Contract) (*desired.State, error) {
			return documents.StateOf(p.host, c)
		},
		Stands: p.watch().Stands, Await: p.watch().StandAgain,
		LastLogLines: func(ctx context.Context, unit string) string { return apiserver.LastLogLines(ctx, p.host, unit) },
		Kubelet:      kubelet.Unit,
		Elsewhere:    map[string][]string{containerd.Unit: {containerd.DropInDir}, kubelet.Unit: {kubelet.ConfigDir}},
		Program:      program, First: []string{report.ServiceUnit, config.Unit, swap.Unit},
		NoRevert: p.noRevert, Within: p.within, Yields: p.yields,
	}
}
