package apiserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

func said(run, text string) string {
	return fmt.Sprintf(`{"MESSAGE":%q,"_SYSTEMD_INVOCATION_ID":%q}`, text, run)
}

func ended(run string) string {
	return fmt.Sprintf(`{"MESSAGE":"kubelet.service: Main process exited","MESSAGE_ID":%q,"INVOCATION_ID":%q,"_SYSTEMD_INVOCATION_ID":"of systemd itself"}`, processExit, run)
}

func TestLastWords(t *testing.T) {
	flags := func(run string) string {
		return strings.TrimSpace(strings.Repeat(said(run, "FLAG: --x")+"\n", 200))
	}
	for _, tc := range []struct{ name, journal, want string }{
		{"nothing", "", ""},
		{"no journal", "-- No entries --\n", ""},
		{"never ended", said("a", "one") + "\n" + said("a", "two"), "; its last lines:\n  one\n  two"},
		{"the next run has begun", said("a", "bad flag") + "\n" + ended("a") + "\n" + flags("b"),
			"; its last lines:\n  bad flag\n  kubelet.service: Main process exited"},
		{"systemd was faster", ended("a") + "\n" + flags("b") + "\n" + said("a", "bad flag"),
			"; its last lines:\n  kubelet.service: Main process exited\n  bad flag"},
		{"the last of two", said("a", "no") + "\n" + ended("a") + "\n" + said("b", "yes") + "\n" + ended("b") + "\n" + said("c", "no"),
			"; its last lines:\n  yes\n  kubelet.service: Main process exited"},
		{"bytes", `{"MESSAGE":[104,105,255]}` + "\n" + `{"MESSAGE":null}`, "; its last lines:\n  hi?"},
		{"secret", said("a", "token abcdef.0123456789abcdef"), "; its last lines:\n  token REDACTED#"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := memory.New()
			var synced bool
			h.Program("/usr/bin/journalctl", func(c host.Command) host.Output {
				if c.Args[0] == "--sync" {
					synced = true
					return host.Output{}
				}
				return host.Output{Stdout: []byte(tc.journal)}
			})
			got := LastWords(t.Context(), h, "kubelet.service")
			if !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" || len(got) > len(tc.want)+4 || !synced {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if got := LastWords(t.Context(), memory.New(), "kubelet.service"); got != "" {
		t.Errorf("without journalctl: %q", got)
	}
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte(ended("a") + "\n" + said("a", "x")))
	f.Add([]byte(`{"MESSAGE":[1,-2,300]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, e := range parseJournal(data) {
			if len(e.Message) > 4*len(data) {
				t.Errorf("%q", e.Message)
			}
		}
	})
}
