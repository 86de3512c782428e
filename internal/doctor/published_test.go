package doctor

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestAsPublished: a report has the names and the shape that AKS Flex Node published, and either
// name ignores a check.
func TestAsPublished(t *testing.T) {
	r := AsPublished(Report{Status: "failed", Summary: Summary{Errors: 1, Unknown: 1}, Checks: []Result{
		{Name: "swap", Status: Error, Finding: "in use", Remedy: "off"}, {Name: "dns", Status: Unknown, Finding: "dark"},
	}})
	text, err := json.Marshal(r)
	const want = `{"status":"failed","checks":[{"name":"swap-active","target":"machine","severity":"error","message":"in use (off)","ignored":false},` +
		`{"name":"dns","target":"machine","severity":"unknown","message":"dark","ignored":false}],"summary":{"ok":0,"warnings":0,"errors":1,"unknown":1}}`
	if err != nil || string(text) != want {
		t.Errorf("%v: %s", err, text)
	}
	if got, err := IgnoredAsPublished("swap-active, cri-artifacts,nvidia-driver,dns,all"); err != nil || strings.Join(got, " ") != "swap artifacts dns all" {
		t.Errorf("%q, %v", got, err)
	}
}
