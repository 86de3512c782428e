package nodeconfigutils_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

const result = `{"ExitCode":"0","Output":"done {\"ExitCode\":\"9\"}","Error":"","ExecDuration":"18",` +
	`"KernelStartTime":"Fri 2026-08-21 17:23:33 UTC","SystemdSummary":"Startup finished","Newer":{"a":1},` +
	`"BootDatapoints":{"KernelStartTime":"Fri 2026-08-21 17:23:33 UTC","KubeletStartTime":"Fri 2026-08-21 17:24:20 UTC"}}`

func TestParseCSEStatus(t *testing.T) {
	want := &nodeconfigutils.CSEStatus{
		ExitCode: "0", Output: `done {"ExitCode":"9"}`, ExecDuration: "18",
		KernelStartTime: "Fri 2026-08-21 17:23:33 UTC", SystemdSummary: "Startup finished",
		BootDatapoints: nodeconfigutils.BootDatapoints{KernelStartTime: "Fri 2026-08-21 17:23:33 UTC", KubeletStartTime: "Fri 2026-08-21 17:24:20 UTC"},
	}
	messages := map[string]string{
		"as published":      "Enable succeeded: \n[stdout]\n" + result + "\n\n[stderr]\n",
		"warnings before":   "Enable succeeded: \n[stdout]\nwarning: {x} {\"a\": 1} is odd\n" + result + "\n[stderr]\nnoise {}",
		"no marks":          result,
		"end missing":       "[stdout]\n" + result,
		"start missing":     "out]\n" + result + "\n[stderr]\n",
		"mark in stderr":    "[stdout]\n" + result + "\n[stderr]\nsaid [stderr] twice",
		"copy in stderr":    "[stdout]\n\n[stderr]\n" + result,
		"camel case names":  "[stdout]\n" + strings.NewReplacer("ExitCode\":\"0", "exitCode\":\"0").Replace(result) + "[stderr]",
		"terminal failed":   "Enable failed: failed to execute command: command terminated with exit status=1\n[stdout]\n" + result + "[stderr]",
		"carriage returns":  "[stdout]\r\n" + result + "\r\n[stderr]\r\n",
		"result in a quote": "[stdout]\nlast {\"result\": \"none\"} then " + result + "[stderr]",
	}
	for name, message := range messages {
		t.Run(name, func(t *testing.T) {
			got, err := nodeconfigutils.ParseCSEStatus(message)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseCSEStatusOfOutputWithMark(t *testing.T) {
	got, err := nodeconfigutils.ParseCSEStatus(`[stdout]` + "\n" + `{"ExitCode":"51","Output":"saw [stderr] in a log"}`)
	if err != nil || got.ExitCode != "51" {
		t.Error(got, err)
	}
}

func TestParseCSEStatusWithoutResult(t *testing.T) {
	got, err := nodeconfigutils.ParseCSEStatus("Enable failed: command terminated with exit status=124\n[stdout]\n\n[stderr]\nkilled")
	if err != nil || got.ExitCode != "124" {
		t.Error(got, err)
	}
	for _, message := range []string{"", "[stdout][stderr]", `[stdout]{"Output":"x"}[stderr]`, `{"ExitCode":`} {
		if _, err := nodeconfigutils.ParseCSEStatus(message); !errors.Is(err, nodeconfigutils.ErrNoStatus) {
			t.Errorf("%q: %v", message, err)
		}
	}
}

// The names are the published ones, as its writer spells them.
func TestStatusNames(t *testing.T) {
	text, err := json.MarshalIndent(nodeconfigutils.CSEStatus{}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "status.json", append(text, '\n'))
}

func FuzzParseCSEStatus(f *testing.F) {
	f.Add("[stdout]\n" + result + "\n[stderr]\n")
	f.Add("{{{{")
	f.Fuzz(func(t *testing.T, message string) {
		status, err := nodeconfigutils.ParseCSEStatus(message)
		if (status == nil) == (err == nil) || err == nil && status.ExitCode == "" {
			t.Errorf("%v, %v", status, err)
		}
	})
}
