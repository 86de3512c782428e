package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/agent/token"
	"github.com/berth-dev/berth/internal/desired"
)

// TestNewTokens: of the configurations in a document those tokens are new that the agent does
// not keep already; what is no configuration, or can't be one, asks for nothing.
func TestNewTokens(t *testing.T) {
	const known, more = "{secretName: s, path: /var/lib/s/token}", "{secretName: m, path: /var/lib/m/token}"
	a := begin(t, machineWith(configText+"  token: {syncConfigs: ["+known+"]}\n"))
	file := func(name, text string) desired.Resource {
		return &desired.File{Path: a.ConfigDir + "/" + name, Content: desired.Text(text), Mode: 0o600, Life: desired.Managed}
	}
	st := &desired.State{Resources: []desired.Resource{
		&desired.Directory{Path: a.ConfigDir},
		file("other.yaml", configText+"  token: {syncConfigs: [{secretName: o, path: /o}]}\n"),
		file("config-v1.yaml", "rubbish: ["),
		file("config-v2.yaml", configText+"  token: {syncConfigs: ["+known+", "+more+"]}\n"),
	}}
	if d := cmp.Diff([]token.File{{Secret: "m", Path: "/var/lib/m/token"}}, a.newTokens(st)); d != "" {
		t.Error(d)
	}
	a.tokensAhead(t.Context(), st) // without an API server nobody waits
}
