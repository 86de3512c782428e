package cli

import (
	"bytes"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host/memory"
)

// TestDocumentsAreBounded: what has no end is not read into memory.
func TestDocumentsAreBounded(t *testing.T) {
	long := path.Join(t.TempDir(), "long.json")
	write(t, long, strings.Repeat(" ", contract.MaxBytes+1))
	for file, c := range map[string]struct {
		code int
		says string
	}{
		"/dev/zero":    {exitcode.Failed, "neither a regular file nor a pipe"},
		t.TempDir():    {exitcode.Failed, "neither a regular file nor a pipe"},
		long:           {exitcode.Refused, "more than 4 MiB"},
		"/nowhere/doc": {exitcode.Failed, "no such file"},
	} {
		for _, command := range []string{"plan", "render", "apply"} {
			code, _, stderr := invoke(memory.New(), "berth", command, "-f", file)
			if code != c.code || !strings.Contains(stderr, c.says) {
				t.Errorf("%s -f %s: code %d: %s", command, file, code, stderr)
			}
		}
	}
}

func TestHints(t *testing.T) {
	refused := &fs.PathError{Op: "open", Path: "/var/lib/berth", Err: syscall.EACCES}
	cases := map[string]struct {
		uid  int
		err  error
		want string
	}{
		"not root":    {1000, refused, "error: open /var/lib/berth: permission denied\n  hint: Run it as root; this is user 1000.\n"},
		"root":        {0, refused, "error: open /var/lib/berth: permission denied\n  hint: Check the file system of the path that is named: read-only, immutable or broken.\n"},
		"closed pipe": {0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			e := &env{err: &out, uid: c.uid}
			if code := e.exit(c.err); code != exitcode.Failed {
				t.Errorf("code %d", code)
			}
			if d := cmp.Diff(c.want, out.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestNoDefaultIsShownAsNone: the help and the pages name a default where there is one.
func TestNoDefaultIsShownAsNone(t *testing.T) {
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		for _, text := range []string{c.UsageString(), page(c)} {
			for _, none := range []string{"(default )", "| `[]` |", "| `0s` |"} {
				if strings.Contains(text, none) {
					t.Errorf("%s: %s in\n%s", c.CommandPath(), none, text)
				}
			}
		}
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check((&env{}).berth())
}

// TestMissingProgramHasAHint: a document alone does not say which program it is
// about, the state made of it does.
func TestMissingProgramHasAHint(t *testing.T) {
	h := memory.New()
	h.Value("/proc/sys/kernel/hostname", "node-1\n")
	code, _, stderr := invoke(h, "berth", "plan", "-f", sample)
	if code != exitcode.Failed || !strings.Contains(stderr, "hint: ") {
		t.Errorf("code %d: %s", code, stderr)
	}
}
