package converge_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// A plan may be read by many: it does not show what only root may read, whatever
// comes in its place.
func TestPlansDoNotShowPrivateFiles(t *testing.T) {
	const old, other = "password = \"hunter2\"\n", "version = 3\nroot = \"/x\"\n"
	for name, c := range map[string]struct {
		mode  desired.Mode
		want  string
		shown []string
	}{
		"private":      {0o600, other, []string{"-REDACTED#", "+version = 3\n", "+root = \"/x\"\n"}},
		"not readable": {0o200, other, []string{"-REDACTED#", "+version = 3\n"}},
		"same content": {0o600, old, nil},
		"public":       {0o644, other, []string{"-password = \"hunter2\"", "+version = 3\n"}},
		"for a group":  {0o640, other, []string{"-password = \"hunter2\"", "+version = 3\n"}},
		"no text":      {0o600, "\xff\n", []string{"-REDACTED#", "+<2 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			h.Put("/etc/containerd/config.toml", old, c.mode.Perm())
			p, err := engine(h, &providers{}).Plan(t.Context(), sealed(t, managed("/etc/containerd/config.toml", c.want)))
			if err != nil || len(p.Actions) != 1 {
				t.Fatalf("%v, %v", verbs(p), err)
			}
			diff := p.Actions[0].Diff
			for _, want := range c.shown {
				if !strings.Contains(diff, want) {
					t.Errorf("no %q in\n%s", want, diff)
				}
			}
			if c.mode&0o077 == 0 && strings.Contains(diff, "hunter2") {
				t.Errorf("shown:\n%s", diff)
			}
		})
	}
}

// Of what berth wrote itself the old side is shown, if no document calls it a
// secret; also after an edit. A secret's mode shows as a mode.
func TestPlansShowOwnFiles(t *testing.T) {
	const path = "/etc/default/kubelet"
	file := func(c desired.Content) *desired.File {
		return &desired.File{Path: path, Content: c, Mode: 0o600, Life: desired.Managed}
	}
	text, secret := func(s string) *desired.File { return file(desired.Text(s)) }, func(s string) *desired.File { return file(desired.SecretBytes([]byte(s))) }
	for name, c := range map[string]struct {
		was, now      *desired.File
		edit          func(h *memory.Host)
		reason        string
		shown, hidden []string
	}{
		"own":                {was: text("--v=2\n"), now: text("--v=3\n"), shown: []string{"---v=2\n+--v=3\n"}},
		"own, edited":        {was: text("--v=2\n"), now: text("--v=2\n"), edit: func(h *memory.Host) { h.Put(path, "--v=9\n", 0o600) }, shown: []string{"---v=9\n+--v=2\n"}},
		"a secret before":    {was: secret("hunter2\n"), now: text("--v=3\n"), shown: []string{"-REDACTED#", "+--v=3\n"}, hidden: []string{"hunter2"}},
		"a secret now":       {was: text("--v=2\n"), now: secret("hunter2\n"), shown: []string{"-REDACTED#", "+REDACTED#"}, hidden: []string{"hunter2", "--v=2"}},
		"a secret's mode":    {was: secret("hunter2\n"), now: secret("hunter2\n"), edit: func(h *memory.Host) { must(h.Chmod(path, 0o640)) }, reason: "mode 0640, want 0600", hidden: []string{"REDACTED", "hunter2"}},
		"a secret's owner":   {was: secret("hunter2\n"), now: secret("hunter2\n"), edit: func(h *memory.Host) { must(h.Chown(path, 7, 7)) }, reason: "owner 7:7, want 0:0", hidden: []string{"REDACTED", "hunter2"}},
		"an original's side": {now: text("--v=3\n"), edit: func(h *memory.Host) { h.Put(path, "hunter2\n", 0o600) }, shown: []string{"-REDACTED#"}, hidden: []string{"hunter2"}},
		"the ledger is lost": {was: text("--v=2\n"), now: text("--v=3\n"), edit: func(h *memory.Host) { must(h.Remove(ledgerFile)) }, shown: []string{"-REDACTED#", "+--v=3\n"}, hidden: []string{"--v=2"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			if c.was != nil {
				runs(t, h, sealed(t, c.was))
			}
			if c.edit != nil {
				c.edit(h)
			}
			p, err := engine(h, &providers{}).Plan(t.Context(), sealed(t, c.now))
			if err != nil || len(p.Actions) != 1 {
				t.Fatalf("%v, %v", verbs(p), err)
			}
			a := p.Actions[0]
			if c.reason != "" && a.Reason != c.reason {
				t.Errorf("reason %q", a.Reason)
			}
			for _, want := range c.shown {
				if !strings.Contains(a.Diff, want) {
					t.Errorf("no %q in\n%s", want, a.Diff)
				}
			}
			for _, not := range c.hidden {
				if strings.Contains(a.Diff, not) {
					t.Errorf("%q shows in\n%s", not, a.Diff)
				}
			}
		})
	}
}
