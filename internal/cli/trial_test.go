package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host/memory"
)

func TestConfirmCommandLine(t *testing.T) {
	for args, c := range map[string]struct {
		code   int
		stderr string
	}{
		"confirm":      {exitcode.Failed, "error: nothing waits to be confirmed: no change is on trial\n"},
		"confirm x":    {exitcode.Failed, `takes no argument "x"`},
		"node restore": {0, ""},
		"node revert":  {0, ""},
		"apply -f " + sample + " --confirm-within -1s":             {exitcode.Failed, "must not be negative"},
		"apply -f " + sample + " --confirm-within 2562047h":        {exitcode.Failed, "must be at most 744h0m0s"},
		"apply -f " + sample + " --confirm-within 1m --no-revert":  {exitcode.Failed, "goes neither with --no-revert nor with --root"},
		"apply -f " + sample + " --confirm-within 1m --root /mnt":  {exitcode.Failed, "goes neither with --no-revert nor with --root"},
		"apply -f " + sample + " --confirm-within 1m --timeout 1m": {exitcode.Failed, "there is nothing to go back to"},
	} {
		h := memory.New()
		h.Value("/proc/sys/kernel/hostname", "node-1\n")
		code, _, stderr := invoke(h, append([]string{"berth"}, strings.Fields(args)...)...)
		if code != c.code || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%s: code %d: %s", args, code, stderr)
		}
	}
}

// TestConfirmedInPart: a change of which a part is missing stays, and is not called the last
// good configuration, which it has not become.
func TestConfirmedInPart(t *testing.T) {
	h := memory.New()
	good := trial.Contract{Document: []byte("{}")}
	if err := trial.Keep(h, desired.OwnerAKS, &good); err != nil {
		t.Fatal(err)
	}
	n, err := trial.Begun(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	n.Owner, n.Waiting = desired.OwnerAKS, true
	if err := n.Save(h); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := invoke(h, "berth", "confirm")
	if code != 0 || stderr != "confirmed: the change of the aks configuration stays\n" {
		t.Errorf("code %d: %s", code, stderr)
	}
	if now, err := trial.Good(h, desired.OwnerAKS); err != nil || !now.Same(&good) {
		t.Errorf("the last good configuration is %v, %v", now, err)
	}
}

func TestStatusOfATrial(t *testing.T) {
	h := memory.New()
	n := &trial.Note{Owner: desired.OwnerAKS, Began: time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)}
	for says, edit := range map[string]func(){
		"a change of the aks configuration since Sun 2026-11-22 08:00:00 UTC; not confirmed yet": func() {},
		"; run berth confirm until Sun 2026-11-22 08:05:00 UTC": func() {
			n.Waiting, n.Until = true, n.Began.Add(5*time.Minute)
		},
		"; run berth confirm within 4m0s\n": func() {
			n.Waiting, n.Until, n.End = true, n.Began.Add(5*time.Minute), 6*time.Minute
			h.Put("/proc/uptime", "120.00 7.00\n", 0o444)
		},
	} {
		m := *n
		edit()
		if err := n.Save(h); err != nil {
			t.Fatal(err)
		}
		if code, stdout, _ := invoke(h, "berth", "status"); code != 0 || !strings.Contains(stdout, "on trial: ") || !strings.Contains(stdout, says) {
			t.Errorf("code %d: %s", code, stdout)
		}
		*n = m
	}
	if _, stdout, _ := invoke(h, "berth", "status", "-ojson"); !strings.Contains(stdout, `"owner": "aks"`) {
		t.Error(stdout)
	}
}
