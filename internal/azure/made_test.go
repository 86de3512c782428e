package azure

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseMadeRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON": "x", "unknown": `{"machine":"/a"}`, "left over": `{} {}`, "nobody": `{"notes":[{"id":"/a","made":true}]}`,
		"nothing": `{"notes":[{"made":true,"by":{"kind":"arc"}}]}`, "null": `{"notes":[null]}`,
	} {
		if m, err := parseMade([]byte(text)); err == nil || !strings.Contains(err.Error(), MadePath) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// What is read is what the next run reads, and what is in it only goes when it is
// forgotten.
func FuzzMade(f *testing.F) {
	f.Add([]byte(`{"notes":[{"id":"/a","made":true,"tag":"t","by":{"kind":"arc","serverId":""},"manager":"","way":{"cas":["x"]}}]}`))
	f.Add([]byte(`{"notes":[{"id":"/b","assignments":["/A","/a","/c"],"by":{"kind":"servicePrincipal","serverId":"","clientSecret":"hush"},"manager":"m","way":{}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseMade(text)
		if err != nil {
			return
		}
		s := &Source{host: machine()}
		m.tidy()
		if err := s.save(m); err != nil {
			t.Fatal(err)
		}
		again, err := s.made()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(jsonOf(t, m), jsonOf(t, again)); diff != "" {
			t.Error(diff)
		}
		for _, n := range again.Notes {
			for len(n.Assignments) > 0 {
				n.forget(n.Assignments[0])
			}
			n.Made = false
		}
		if err := s.save(again); err != nil {
			t.Fatal(err)
		}
		if _, err := s.host.Lstat(MadePath); err == nil {
			t.Error("nothing is still something")
		}
	})
}

func jsonOf(t *testing.T, m *made) string {
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
