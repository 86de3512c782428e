package agent

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/internal/agent/token"
	"github.com/berth-dev/berth/internal/agent/unitcheck"
	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract/osc"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

func TestUnitsThatAreToRun(t *testing.T) {
	yes, no := true, false
	st := &desired.State{}
	st.Add(&desired.File{Path: "/etc/a"},
		&desired.Unit{Name: "runs.service", Enablement: desired.Enabled, Activation: desired.Started},
		&desired.Unit{Name: "off.service", Enablement: desired.Disabled, Activation: desired.Stopped},
		&desired.Unit{Name: "stopped.service", Enablement: desired.Enabled, Activation: desired.Stopped},
		&desired.Unit{Name: "io.x.proxy@.service", Enablement: desired.Enabled},
		&desired.Unit{Name: "w@.service", Activation: desired.Started}, // of a template there is nothing that runs
		&desired.Unit{Name: "mentioned.service", Enablement: desired.Enabled, Activation: desired.Started, Mentioned: true},
		&desired.Unit{Name: "any.service", Activation: desired.Started},
		&desired.Unit{Name: "rests.service", Activation: desired.Stopped})
	want := []unitcheck.Unit{{Name: "runs.service", Enable: &yes}, {Name: "off.service", Enable: &no, Stop: true}, {Name: "stopped.service", Enable: &yes, Stop: true},
		{Name: "mentioned.service"}, {Name: "any.service"}, {Name: "rests.service", Enable: &no, Stop: true}}
	if d := cmp.Diff(want, units(st)); d != "" {
		t.Error(d)
	}
	if got := units(nil); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}

// TestTokensAreThoseOfTheConfiguration: which, where, and how often they are looked at.
func TestTokensAreThoseOfTheConfiguration(t *testing.T) {
	h := machineWith(configText + "  token: {syncPeriod: 30m, syncConfigs: [{secretName: s, path: /var/lib/s/token}]}\n")
	got := begin(t, h).tokens(nil)
	if d := cmp.Diff([]token.File{{Secret: "s", Path: "/var/lib/s/token"}}, got.Files); d != "" || got.Every != 30*time.Minute {
		t.Errorf("every %s%s", got.Every, d)
	}
}

// conditions is an API server that keeps the last condition of its Node.
type conditions struct{ last core.NodeCondition }

func (c *conditions) PatchNodeStatus(_ context.Context, _ string, patch []byte) (*core.Node, error) {
	var n core.Node
	err := json.Unmarshal(patch, &n)
	c.last = n.Status.Conditions[0]
	return &n, err
}

// aUnit is a machine on which a.service is in a state.
func aUnit(t *testing.T, state string) *memory.Host {
	t.Helper()
	h, exit := memory.New(), 0
	h.Program("/usr/bin/a", func(host.Command) host.Output { return host.Output{ExitCode: exit} })
	h.Put("/etc/systemd/system/a.service", "[Service]\nType=exec\nExecStartPre=/usr/bin/a\nExecStart=/usr/bin/a\n", 0o644)
	if state == "failed" {
		exit = 1
	}
	if err := h.StartUnit(t.Context(), "a.service"); (err != nil) != (state == "failed") {
		t.Fatal(err)
	}
	if state == "inactive" {
		if err := h.StopUnit(t.Context(), "a.service"); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := h.Unit(t.Context(), "a.service"); err != nil || is.ActiveState != state {
		t.Fatalf("%+v, %v", is, err)
	}
	return h
}

func TestTheConditionIsThatOfTheDocument(t *testing.T) {
	const fine, wrong = core.ConditionTrue, core.ConditionFalse
	for unit, want := range map[string]map[string]core.ConditionStatus{
		`{name: a.service}`:                                        {"active": fine, "inactive": fine, "failed": fine},
		`{name: a.service, filePaths: [/etc/f]}`:                   {"active": fine, "inactive": fine, "failed": fine},
		`{name: a.service, command: start}`:                        {"active": fine, "inactive": fine, "failed": fine},
		`{name: a.service, command: stop}`:                         {"active": fine, "inactive": fine, "failed": fine},
		`{name: a.service, enable: true}`:                          {"active": fine, "inactive": wrong, "failed": wrong},
		`{name: a.service, content: "[Service]"}`:                  {"active": fine, "inactive": wrong, "failed": wrong},
		`{name: a.service, dropIns: [{name: d.conf, content: x}]}`: {"active": fine, "inactive": wrong, "failed": wrong},
		`{name: a.service, command: stop, content: "[Service]"}`:   {"active": fine, "inactive": fine, "failed": wrong},
		`{name: a.service, command: stop, enable: true}`:           {"active": fine, "inactive": fine, "failed": wrong},
		`{name: a.service, enable: false}`:                         {"active": wrong, "inactive": fine, "failed": fine},
	} {
		for state, status := range want {
			t.Run(unit+" is "+state, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if got := conditionOf(t, unit, aUnit(t, state)); got.Status != status {
						t.Errorf("%s: %s", got.Status, got.Message)
					}
				})
			})
		}
	}
}

// conditionOf is what a machine with a document of one unit tells.
func conditionOf(t *testing.T, unit string, h *memory.Host) core.NodeCondition {
	t.Helper()
	doc, err := osc.Decode([]byte("apiVersion: extensions.gardener.cloud/v1alpha1\nkind: OperatingSystemConfig\nspec: {files: [{path: /etc/f, content: {inline: {data: x}}}], units: [" + unit + "]}"))
	if err != nil {
		t.Fatal(err)
	}
	st, err := osc.Translate(doc, component.Facts{})
	if err != nil {
		t.Fatal(err)
	}
	calls, node := &conditions{}, &apiserver.Latest[core.Node]{}
	node.Set(&core.Node{ObjectMeta: meta.ObjectMeta{Name: "n1"}})
	check := &unitcheck.Check{Systemd: h, Calls: calls, Node: node, Every: time.Hour, Stuck: time.Hour, Refresh: time.Hour, Units: func() []unitcheck.Unit { return units(st) }}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- check.Run(ctx) }()
	synctest.Wait()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return calls.last
}
