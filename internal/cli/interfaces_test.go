package cli

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/host/memory"
)

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
		p, asked := (&env{}).parts(h), 0
		p.offline = c.offline
		p.asked = func() (azure.Cloud, error) { return azure.Cloud{Interfaces: c.told}, nil }
		p.askAgain = func(context.Context) azure.Cloud { asked++; return azure.Cloud{Interfaces: c.answer} }
		doc, err := p.decode([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		for who, facts := range map[string]func() (component.Facts, error){
			"the run": func() (component.Facts, error) { return p.factsOfDecoded(t.Context(), h, unobserved) },
			"a plan":  func() (component.Facts, error) { return p.factsOf(t.Context(), doc) },
		} {
			asked = 0
			f, err := facts()
			if diff := cmp.Diff(c.want, f.Interfaces); err != nil || asked != c.asked || diff != "" {
				t.Errorf("%s: %s: asked %d times, %v, %s", why, who, asked, err, diff)
			}
		}
	}
}
