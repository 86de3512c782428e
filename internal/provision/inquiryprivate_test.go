package provision

import (
	"context"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/hostsagent"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/host/memory"
)

// The address of a private API server is asked for again, and only where a document wants
// it and nothing is known of it: a service that was busy must not keep a machine out of
// the cluster.
func TestPrivateServerIsAskedForAgain(t *testing.T) {
	text, err := os.ReadFile("../contract/aks/testdata/minimal.json")
	if err != nil {
		t.Fatal(err)
	}
	const name, known = "c.privatelink.westeurope.azmk8s.io", "10.224.0.5"
	private := strings.Replace(string(text), `"cluster.example"`, `"`+name+`"`, 1)
	with := func(text string) string { return strings.Replace(text, "{", `{"enable_hosts_config_agent":true,`, 1) }
	for why, c := range map[string]struct {
		text, told, file string
		offline          bool
		asked            int
		want             string
	}{
		"busy":            {text: with(private), asked: 1, want: "10.224.0.4"},
		"told":            {text: with(private), told: known, want: known},
		"written down":    {text: with(private), file: "# BEGIN berth api-server\n" + known + " " + name + "\n# END berth api-server\n", want: known},
		"not wanted":      {text: private},
		"a public name":   {text: with(string(text))},
		"another machine": {text: with(private), offline: true},
		"an image build":  {text: strings.Replace(with(private), "{", `{"pre_provision_only":true,`, 1)},
	} {
		h := memory.New()
		if c.file != "" {
			h.Put(hostsagent.File, c.file, 0o644)
		}
		q, asked := inquiryOf(h), 0
		q.Source.Offline = c.offline
		q.Source.Asked = func() (azure.Cloud, error) { return azure.Cloud{APIServer: hostsagent.Address(c.told)}, nil }
		q.Again = func(context.Context) azure.Cloud {
			asked++
			return azure.Cloud{APIServer: netip.MustParseAddr("10.224.0.4")}
		}
		doc, err := contract.Decode([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		for who, facts := range map[string]func() (component.Facts, error){
			"the run": func() (component.Facts, error) {
				return q.FactsReferred(t.Context(), contract.ReferencesOf(doc), unobserved)
			},
			"a plan": func() (component.Facts, error) { return q.FactsFor(t.Context(), doc) },
		} {
			asked = 0
			f, err := facts()
			if got := f.APIServer; err != nil || asked != c.asked || got.IsValid() != (c.want != "") || c.want != "" && got.String() != c.want {
				t.Errorf("%s: %s: asked %d times, %v, %v", why, who, asked, got, err)
			}
		}
	}
}
