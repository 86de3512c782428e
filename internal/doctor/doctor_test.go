package doctor

import (
	"bytes"
	"context"
	"flag"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/host/survey"
)

var update = flag.Bool("update", false, "write the page anew")

// TestPage: docs/preflight.md has the registry of checks.
func TestPage(t *testing.T) {
	const file, begin, end = "../../docs/preflight.md", "<!-- checks -->\n", "<!-- end of checks -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(text), begin)
	have, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s lacks its marks", file)
	}
	if *update {
		have = Table()
		if err := os.WriteFile(file, []byte(head+begin+have+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(Table(), have); d != "" {
		t.Errorf("%s is stale:\n%s", file, d)
	}
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range all() {
		if seen[c.Name] || c.Name == All || c.When == 0 || c.Asks == "" || c.Finds == "" {
			t.Errorf("%+v", c)
		}
		seen[c.Name] = true
	}
	if got := UnknownCheck([]string{"all", "dns", "frob"}); got != "frob" {
		t.Errorf("got %q", got)
	}
	if got := UnknownCheck([]string{"dns"}); got != "" {
		t.Errorf("got %q", got)
	}
}

// TestRun makes all checks of both occasions on one machine: they come in their order,
// what is ignored does not count, and the report reads well.
func TestRun(t *testing.T) {
	w := newWorld(t)
	w.swap()
	w.o.Host = &guarded{w.memory, nil, nil, nil}
	r := Run(t.Context(), Preflight, w.o, []string{"cgroups"})
	for i, c := range Checks(Preflight) {
		if r.Checks[i].Name != c.Name || r.Checks[i].Finding == "" {
			t.Errorf("%d: %+v", i, r.Checks[i])
		}
	}
	if r.Status != StatusFailed || r.Cause != "" || r.Summary.Errors != 1 || r.Summary.Ignored != 1 || r.Summary.Unknown != 2 {
		t.Errorf("%+v", r)
	}
	if r = Run(t.Context(), Preflight, w.o, []string{All}); r.Status != StatusOK || r.Summary.Errors != 0 {
		t.Errorf("%+v", r)
	}
	r = Run(t.Context(), Node, w.o, nil)
	if r.Status != StatusFailed || r.Cause != "cgroups" {
		t.Errorf("%+v", r)
	}
}

func TestText(t *testing.T) {
	r := Report{Status: StatusFailed, Cause: "swap", Seconds: 0.25, Summary: Summary{OK: 1, Errors: 1, Ignored: 1}, Checks: []Result{
		{Name: "root", Status: OK, Finding: "this is root"},
		{Name: "swap", Status: Error, Finding: "one\ntwo", Remedy: "off", Field: "node"},
		{Name: "dns", Status: Warning, Finding: "x", Ignored: true},
	}}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	want := `ok       root               this is root
error    swap               one
                            two
                            field: node
                            remedy: off
ignored  dns                x
look at swap first: it explains the most
3 checks in 0.25 s: 1 ok, 0 warnings, 1 error, 0 unknown, 1 ignored
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

func TestResult(t *testing.T) {
	f := (&finding{}).ok("fine").warn("w", "odd").fail("e", "bad").fail("e", "worse").unknown("", "dark").at("x.y")
	want := Result{Status: Error, Finding: "bad\nworse\nodd\ndark", Remedy: "e\nw", Field: "x.y"}
	if d := cmp.Diff(want, f.result()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(Result{Status: OK, Finding: "a; b"}, okf("a").ok("b").at("x").result()); d != "" {
		t.Error(d)
	}
}

// TestEndsInTime: a check that hangs is unknown when the time of all is over, and so is
// one that panics; the others are told.
func TestEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		start := time.Now()
		r := Run(t.Context(), Node, Options{Host: memory.New(), Survey: &hanging{until: release}, Env: os.Getenv,
			Runtime: func(context.Context) (Runtime, error) { panic("no") }}, nil)
		took := time.Since(start)
		if took > Budget+time.Second {
			t.Errorf("took %s", took)
		}
		for _, c := range r.Checks {
			if c.Name == "disk" && (c.Status != Unknown || !strings.Contains(c.Finding, "not ended")) || c.Name == "root" && c.Status != OK {
				t.Errorf("%+v", c)
			}
		}
	})
}

func TestAPanicIsUnknown(t *testing.T) {
	c := Check{Name: "x", run: func(context.Context, *visit) *finding { panic("no") }}
	if r := ask(t.Context(), c, newVisit(t.Context(), Node, Options{Host: memory.New()})); r.Status != Unknown || !strings.Contains(r.Remedy, "defect") {
		t.Errorf("%+v", r)
	}
}

// hanging is a survey whose file systems do not answer.
type hanging struct {
	fakeSurvey
	until chan struct{}
}

func (h *hanging) Space(string) (survey.Space, error) {
	<-h.until
	return survey.Space{}, nil
}

// FuzzRead: what programs and files say is read, whatever it is.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"MemTotal: 1 kB", "6.1.0", "h.eyJleHAiOjF9.s", "10%", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		meminfo(text, "MemTotal")
		if v, ok := majorMinor(text); ok && (v[0] < 0 || v[1] < 0) {
			t.Errorf("%q: %v", text, v)
		}
		if end, err := jwtEnd(text); err != nil && !end.IsZero() {
			t.Errorf("%q: %v", text, end)
		}
		if n := threshold(map[string]any{"evictionHard": map[string]any{"x": text}}, "x", 1000); strings.HasSuffix(text, "%") && n > 1000 {
			t.Errorf("%q: %d", text, n)
		}
		if _, err := firstCertificate([]byte(text)); err == nil && !strings.Contains(text, "CERTIFICATE") {
			t.Errorf("%q is a certificate", text)
		}
	})
}
