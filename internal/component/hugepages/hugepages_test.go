package hugepages

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

// What is in force now is what the file sets at the next boot, and nothing else is.
func TestResources(t *testing.T) {
	for name, c := range map[string]struct {
		settings Settings
		want     map[string]string
	}{
		"both":    {Settings{Enabled: "madvise", Defrag: "defer+madvise"}, map[string]string{Enabled: "madvise", Defrag: "defer+madvise"}},
		"one":     {Settings{Enabled: "never"}, map[string]string{Enabled: "never"}},
		"another": {Settings{Defrag: "never"}, map[string]string{Defrag: "never"}},
		"neither": {},
	} {
		t.Run(name, func(t *testing.T) {
			st, live, boot := golden.State(t, Resources(c.settings)), map[string]string{}, 0
			for _, r := range st.Resources {
				if s, ok := r.(*desired.Sysfs); ok {
					live[s.Path] = s.Value
				}
			}
			if len(c.want) > 0 {
				text := string(golden.File(t, st, BootFile).Content.Data())
				for path, value := range c.want {
					if live[path] != value || !strings.Contains(text, "\nw "+path+" - - - - "+value+"\n") {
						t.Errorf("%s: now %q, at boot %q", path, live[path], text)
					}
				}
				boot = strings.Count(text, "\nw ")
			}
			if len(live) != len(c.want) || boot != len(c.want) {
				t.Errorf("%d values now, %d at boot, want %d", len(live), boot, len(c.want))
			}
		})
	}
}
