package cli

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host/memory"
)

// What another document put on the machine is refused by name; plan shows it, and
// --take-over moves it.
func TestTakeOver(t *testing.T) {
	const config = "/etc/containerd/config.toml"
	h := memory.New()
	other := &desired.State{Owner: desired.OwnerOSC}
	other.Add(&desired.File{Path: config, Content: desired.Text("version = 2\n"), Mode: 0o644, Life: desired.Managed})
	if err := other.Seal(); err != nil {
		t.Fatal(err)
	}
	if _, err := converge.New(converge.Options{Host: h, Offline: true}).Apply(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{"plan", exitcode.Failed, "(blocked: --take-over moves it)", "hint: Take it out of one of the two documents"},
		{"apply", exitcode.Failed, "", config + " belongs to the osc contract, and the aks contract wants it otherwise"},
		{"plan --take-over", exitcode.Pending, "taken over from osc", ""},
		{"apply --take-over", 0, "", "applied"},
		{"plan", 0, "no changes", ""},
	} {
		args := append([]string{"berth"}, strings.Fields(c.args)...)
		code, stdout, stderr := invoke(h, append(args, "-f", sample, "--root", "/mnt")...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%s: code %d: %s%s", c.args, code, stdout, stderr)
		}
	}
}
