package agent

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

const wantUnit = `# Written by berth. Settings of your own go into a drop-in.
[Unit]
Description=berth's node agent
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
NotifyAccess=main
ExecStart=/usr/local/bin/berth agent --config-dir=/etc/na
Restart=always
RestartSec=5
WatchdogSec=60
LockPersonality=yes
RestrictRealtime=yes
RestrictNamespaces=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=~@cpu-emulation @debug @obsolete @raw-io
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
`

func TestSetup(t *testing.T) {
	h := memory.New()
	st, err := Setup(h, &ledger.Reader{}, "/usr/local/bin/berth", "/etc/na")
	if err != nil {
		t.Fatal(err)
	}
	var ids []desired.ID
	for _, r := range st.Resources {
		ids = append(ids, r.ID())
	}
	if d := cmp.Diff([]desired.ID{"file:/etc/systemd/system/gardener-node-agent.service", "unit:gardener-node-agent.service"}, ids); d != "" {
		t.Error(d)
	}
	f := st.Lookup(ids[0]).(*desired.File)
	if d := cmp.Diff(wantUnit, string(f.Content.Data())); d != "" {
		t.Error(d)
	}
}

// After an update the program is a link to a copy: bootstrap keeps both.
func TestSetupAfterAnUpdate(t *testing.T) {
	const link, target = "/opt/bin/gardener-node-agent", "/opt/bin/.berth-agent/k/gardener-node-agent"
	h := memory.New()
	st := &desired.State{Owner: desired.OwnerBerth}
	file := &desired.File{Path: target, Content: desired.Text("berth"), Mode: 0o755, Life: desired.Managed}
	to := &desired.Link{Path: link, Target: target}
	to.After = []desired.ID{file.ID()}
	st.Add(file, to)
	if err := st.Seal(); err != nil {
		t.Fatal(err)
	}
	engine := converge.New(converge.Options{Host: h, Command: "test", Workers: 1})
	if _, err := engine.Apply(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	st, err := Setup(h, &ledger.Reader{}, link, config.BaseDir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Apply(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if got, err := h.Readlink(link); got != target || err != nil {
		t.Error("the link is not what it was:", got, err)
	}
	if text, err := h.ReadFile(target); string(text) != "berth" || err != nil {
		t.Error("the copy is not what it was:", string(text), err)
	}
}

func TestSetupUnderThePublishedName(t *testing.T) {
	h := memory.New()
	h.Put(unitDir+config.InitUnit, "x", 0o644)
	h.Put(unitDir+"cloud-config-downloader.service", "x", 0o644)
	st, err := Setup(h, &ledger.Reader{}, "/opt/bin/gardener-node-agent", config.BaseDir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal([]desired.Resource{st.Lookup(desired.UnitID(config.InitUnit)), st.Lookup(desired.UnitID("cloud-config-downloader.service"))})
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"after":["unit:gardener-node-agent.service"],"name":"gardener-node-init.service","enablement":"disabled"},` +
		`{"after":["unit:gardener-node-agent.service"],"name":"cloud-config-downloader.service","enablement":"disabled","activation":"stopped"}]`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Error(d)
	}
}
