package bench

import (
	"slices"
	"strings"
	"testing"
)

func TestOnlySomeParts(t *testing.T) {
	for names, needs := range map[string]bool{"engine": false, "artifacts,engine": false, "engine,join": true} {
		o := Options{Only: strings.Split(names, ",")}
		if err := o.Check(); err != nil || o.NeedsLab() != needs {
			t.Errorf("%s: needs a lab %v, %v", names, o.NeedsLab(), err)
		}
	}
	if all := (Options{}); !all.NeedsLab() {
		t.Error("all parts need no lab")
	}
	if err := (Options{Only: []string{"engine", "none"}}).Check(); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("an unknown part: %v", err)
	}
	for _, p := range parts {
		if (p.inLab == nil) == (p.onHost == nil) || !slices.Contains(Parts(), p.name) {
			t.Errorf("part %s runs nowhere or twice", p.name)
		}
	}
}
