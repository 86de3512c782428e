package provision

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

func inquiryOf(h host.Host) *Inquiry {
	return &Inquiry{Host: h, Agent: func(host.FS) (bool, error) { return true, nil },
		Source: FactsSource{Version: func(context.Context, host.Host, string) (string, error) { return "", nil }}}
}

// TestAgentOfADocument: a NodeConfig says itself whether an agent keeps the machine, and no
// cloud is waited for; other documents are told of the agent that is there.
func TestAgentOfADocument(t *testing.T) {
	for file, kept := range map[string]bool{"../contract/node/testdata/minimal.yaml": false, "../contract/aks/testdata/minimal.json": true} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := contract.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		q, asked := inquiryOf(memory.New()), 0
		q.Source.Cloud = func(context.Context) azure.Cloud { asked++; return azure.Cloud{} }
		f, err := q.FactsFor(t.Context(), doc)
		if err != nil || f.Agent != kept || (asked > 0) != kept {
			t.Errorf("%s: %v; agent %t, the cloud was asked %d times", file, err, f.Agent, asked)
		}
	}
}

// The interfaces are asked for again, and only where a document wants some and not all of
// them are known: matched by its name, another one may get what is meant for one.
func TestInterfacesAreAskedForAgain(t *testing.T) {
	text, err := os.ReadFile("../contract/aks/testdata/minimal.json")
	if err != nil {
		t.Fatal(err)
	}
	const first, second = "00:0d:3a:00:00:01", "00:0d:3a:00:00:02"
	two := strings.Replace(string(text), "{", `{"network_config":{"standard_secondary_nic_count":1},`, 1)
	for why, c := range map[string]struct {
		text, told string
		answer     string
		offline    bool
		asked      int
		want       []string
	}{
		"busy":                    {text: two, asked: 1, answer: first + "," + second, want: []string{first, second}},
		"busy, and known by name": {text: two, told: ",", asked: 1, answer: first + "," + second, want: []string{first, second}},
		"busy for long":           {text: two, told: ",", asked: 1, want: []string{"", ""}},
		"told":                    {text: two, told: first + "," + second, want: []string{first, second}},
		"told of too few":         {text: two, told: first, want: []string{first}},
		"known before":            {text: two, told: "," + second, want: []string{"", second}},
		"not wanted":              {text: string(text)},
		"another machine":         {text: two, offline: true},
		"an image build":          {text: strings.Replace(two, "{", `{"pre_provision_only":true,`, 1)},
	} {
		h := memory.New()
		q, asked := inquiryOf(h), 0
		q.Source.Offline = c.offline
		q.Source.Asked = func() (azure.Cloud, error) { return azure.Cloud{Interfaces: c.told}, nil }
		q.Again = func(context.Context) azure.Cloud { asked++; return azure.Cloud{Interfaces: c.answer} }
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
			if diff := cmp.Diff(c.want, f.Interfaces); err != nil || asked != c.asked || diff != "" {
				t.Errorf("%s: %s: asked %d times, %v, %s", why, who, asked, err, diff)
			}
		}
	}
}
