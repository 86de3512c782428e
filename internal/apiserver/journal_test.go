package apiserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// exited is systemd's entry about a run that ended, as journalctl prints it with
// the fields that it always adds.
func exited(run string) string {
	return fmt.Sprintf(`{"_BOOT_ID":"1","__CURSOR":"s=2;i=1","INVOCATION_ID":%q,"__MONOTONIC_TIMESTAMP":"3","__REALTIME_TIMESTAMP":"4"}`+"\n", run)
}

// entries are what journalctl prints of a unit, at seconds since the boot: systemd's own entries name the run in
// another field than the unit's.
func entries(said ...entry) string {
	var b strings.Builder
	for i, e := range said {
		field := [2]string{"INVOCATION_ID", "_SYSTEMD_INVOCATION_ID"}[i%2]
		if e.run == "" {
			field = "PRIORITY"
		}
		fmt.Fprintf(&b, `{"__MONOTONIC_TIMESTAMP":"%d","MESSAGE":%q,%q:%q,"_PID":%q}`+"\n", e.at*1e6, e.message, field, e.run, e.pid)
	}
	return b.String()
}

// journal is a machine's: the answers of journalctl by the query's own words.
func journal(h *memory.Host, answers map[string]string) (asked *[]string) {
	asked = new([]string)
	for _, program := range []string{"/usr/bin/journalctl", "/usr/bin/systemctl"} {
		h.Program(program, func(c host.Command) host.Output {
			*asked = append(*asked, strings.Join(c.Args, " "))
			return host.Output{Stdout: []byte(answers[strings.Join(c.Args, " ")])}
		})
	}
	return asked
}

const (
	askEnded = "-b -q --no-pager -n 1 -o json --output-fields=INVOCATION_ID -u kubelet.service MESSAGE_ID=" + processExit
	askWords = "-b -q --no-pager -n 40 -o cat -u kubelet.service"
	askUnit  = "-b -q --no-pager -n 1000 -o json --output-fields=MESSAGE,INVOCATION_ID,_SYSTEMD_INVOCATION_ID,_PID -u kubelet.service"
	askMain  = "show --property=MainPID --value kubelet.service"
	askOfA   = "-b -q --no-pager -n 40 -o cat _SYSTEMD_INVOCATION_ID=a + _PID=1 INVOCATION_ID=a"
)

func TestLastLogLines(t *testing.T) {
	for name, c := range map[string]struct {
		answers map[string]string
		want    string
	}{
		"nothing":                {nil, ""},
		"never ended":            {map[string]string{askWords: "one\ntwo\n"}, "; its last lines:\n  one\n  two"},
		"the next run has begun": {map[string]string{askEnded: exited("a"), askOfA: "bad flag\nexited\n", askWords: "FLAG: --x\n"}, "; its last lines:\n  bad flag\n  exited"},
		"the journal was late": {map[string]string{askEnded: exited("b"), askUnit: entries(
			entry{"other flag", "", 0, ""}, entry{"Starting", "a", 1, ""}, entry{"flag", "", 31, ""}, entry{"Starting", "b", 40, ""}, entry{"bad", "b", 41, ""}, entry{"end", "", 42, ""}, entry{"Starting", "c", 43, ""},
		)}, "; its last lines:\n  flag\n  Starting\n  bad\n  end"},
		"the next run had begun when the journal came to it": {map[string]string{askEnded: exited("b"), askUnit: entries(
			entry{"old", "a", 39, "7"}, entry{"Stopped", "a", 39, "1"}, entry{"Starting", "b", 40, "1"}, entry{"end", "b", 42, "1"}, entry{"Starting", "c", 43, "1"}, entry{"bad flag", "c", 44, "8"}, entry{"FLAG", "c", 45, "9"},
		), askMain: "9\n"}, "; its last lines:\n  Starting\n  end\n  bad flag"},
		"its words came before systemd's": {map[string]string{askEnded: exited("b"), askUnit: entries(
			entry{"older", "0", 8, "5"}, entry{"Stopping", "a", 39, "1"}, entry{"stopped", "c", 39, "6"}, entry{"Stopped", "a", 39, "1"}, entry{"bad flag", "c", 40, "7"},
			entry{"Starting", "b", 40, "1"}, entry{"end", "b", 42, "1"}, entry{"Starting", "c", 43, "1"}, entry{"FLAG", "c", 45, "9"},
		), askMain: "9\n"}, "; its last lines:\n  stopped\n  bad flag\n  Starting\n  end"},
		"many words, all late": {map[string]string{askEnded: exited("b"), askOfA: "", askUnit: entries(
			append([]entry{{"Starting", "b", 40, "1"}, {"end", "b", 42, "1"}}, slices.Repeat([]entry{{"I1123 flags.go:64] FLAG: --" + strings.Repeat("x", 300), "", 43, "8"}}, 300)...)...,
		) + entries(entry{"bad flag", "", 43, "8"})}, "; its last lines:\n  Starting\n  end\n  bad flag"},
		"odd messages": {map[string]string{askEnded: exited("a"), askUnit: `{"MESSAGE":[104,105,255],"_SYSTEMD_INVOCATION_ID":"a"}` + "\n" +
			`{"MESSAGE":null}` + "\nrubbish\n" + `{"MESSAGE":"end"}`}, "; its last lines:\n  hi?\n  end"},
		"an odd answer":                    {map[string]string{askEnded: "-- Boot 1 --\n", askWords: "one\n"}, "; its last lines:\n  one"},
		"a field given twice":              {map[string]string{askEnded: `{"INVOCATION_ID":["a","b"]}`, askWords: "one\n"}, "; its last lines:\n  one"},
		"deprecated flags":                 {map[string]string{askWords: "Flag --x has been deprecated, this parameter\nbad flag\nI1122 DEPRECATED: y\n"}, "; its last lines:\n  bad flag"},
		"flags of an older kubelet's help": {map[string]string{askWords: "Error: unknown flag: --x\n      --address ip   the address (DEPRECATED: set it in the file)\n"}, "; its last lines:\n  Error: unknown flag: --x"},
		"warnings of containerd":           {map[string]string{askWords: "time=\"2026-11-28T21:00:00Z\" level=warning msg=\"`mirrors` is deprecated\"\ncontainerd: bad\n"}, "; its last lines:\n  containerd: bad"},
		"ended by what is deprecated":      {map[string]string{askWords: "E1128 command failed: cgroup v1 is deprecated\ncontainerd: version 1 is deprecated, and refused\n"}, "; its last lines:\n  E1128 command failed: cgroup v1 is deprecated\n  containerd: version 1 is deprecated, and refused"},
		"flags of a start":                 {map[string]string{askWords: "I1123 20:39:29.444108     372 flags.go:64] FLAG: --tls-cert-file=\"\"\nE1123 bad setting\n"}, "; its last lines:\n  E1123 bad setting"},
		"bytes":                            {map[string]string{askWords: "hi\xff\n"}, "; its last lines:\n  hi?"},
		"secret":                           {map[string]string{askWords: "token abcdef.0123456789abcdef\n"}, "; its last lines:\n  token REDACTED#"},
	} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			asked := journal(h, c.answers)
			got := LastLogLines(t.Context(), h, "kubelet.service")
			if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" || len(got) > len(c.want)+4 {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if slices.Index(*asked, "--sync") != 0 {
				t.Errorf("asked %q", *asked)
			}
		})
	}
	if got := LastLogLines(t.Context(), memory.New(), "kubelet.service"); got != "" {
		t.Errorf("without journalctl: %q", got)
	}
}

// runner is a function that runs programs.
type runner func(context.Context, host.Command) (host.Output, error)

// Run implements host.Runner.
func (f runner) Run(ctx context.Context, c host.Command) (host.Output, error) { return f(ctx, c) }

// TestABusyJournalIsReadAllTheSame: --sync has a budget of its own and leaves the
// rest to the questions.
func TestABusyJournalIsReadAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := runner(func(ctx context.Context, c host.Command) (host.Output, error) {
			if c.Args[0] == "--sync" {
				<-ctx.Done()
				return host.Output{}, ctx.Err()
			}
			time.Sleep(time.Second)
			return host.Output{Stdout: []byte("bad flag\n")}, ctx.Err()
		})
		const want = "; its last lines:\n  bad flag"
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for _, ctx := range []context.Context{t.Context(), ended} {
			if got := LastLogLines(ctx, busy, "kubelet.service"); got != want {
				t.Errorf("got %q", got)
			}
		}
	})
}

func FuzzEntry(f *testing.F) {
	f.Add([]byte(`{"MESSAGE":"a","INVOCATION_ID":"b"}`))
	f.Add([]byte(`{"MESSAGE":[1,255,65535],"_SYSTEMD_INVOCATION_ID":"b"}`))
	f.Add([]byte(`{"MESSAGE":null,"INVOCATION_ID":[]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if e := parseEntry(line); len(e.message) > 3*len(line) || len(e.run) > 3*len(line) || !utf8.ValidString(e.message) {
			t.Errorf("%+v", e)
		}
	})
}

func FuzzInvocation(f *testing.F) {
	f.Add([]byte(exited("a")))
	f.Add([]byte(`{"INVOCATION_ID":[1,-2]}`))
	f.Fuzz(func(t *testing.T, entry []byte) {
		if run := parseInvocation(entry); len(run) > 3*len(entry) {
			t.Errorf("%q", run)
		}
	})
}
