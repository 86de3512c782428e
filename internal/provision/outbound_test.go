package provision

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/apicheck"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

func outbound(budget time.Duration) *desired.Check {
	return apicheck.Outbound([]string{"curl", "-v", "https://mcr.example/v2/"}, budget)
}

// answers makes curl fail so often before it succeeds.
func answers(h *memory.Host, failures int) *[]host.Command {
	var seen []host.Command
	h.Program("/usr/bin/curl", func(c host.Command) host.Output {
		seen = append(seen, c)
		if len(seen) > failures {
			return host.Output{}
		}
		return host.Output{ExitCode: 6, Stderr: []byte("* Trying\ncurl: (6) Could not resolve host: mcr.example\n")}
	})
	return &seen
}

func TestOutbound(t *testing.T) {
	for name, c := range map[string]struct {
		failures, tries int
		budget, took    time.Duration
		says            []string
	}{
		"at once":         {0, 1, time.Minute, 0, nil},
		"after a while":   {3, 4, time.Minute, 3 * time.Second, nil},
		"never":           {99, 20, time.Hour, 19 * time.Second, []string{"no way out: curl -v https://mcr.example/v2/: exit code 6: curl: (6)", "(20 tries in 19s)"}},
		"budget is over":  {99, 3, 3 * time.Second, 2 * time.Second, []string{"(3 tries in 2s)"}},
		"budget of a try": {99, 1, time.Second, 0, []string{"Could not resolve"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			seen, start := answers(h, c.failures), h.Now()
			err := Prober{Host: h}.Probe(t.Context(), outbound(c.budget))
			if (err == nil) != (c.says == nil) || len(*seen) != c.tries || h.Now().Sub(start).Round(time.Second) != c.took {
				t.Errorf("%v, %d tries in %s", err, len(*seen), h.Now().Sub(start))
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v: no %q", err, part)
				}
			}
			if f := Explain(err); c.says != nil && (f.Code.Number != 50 || !strings.Contains(f.Hint, "outbound_command")) {
				t.Errorf("%+v", f)
			}
		})
	}
}

// A program that the image lacks does not come by waiting.
func TestOutboundWithoutProgram(t *testing.T) {
	h := memory.New()
	start := h.Now()
	err := Prober{Host: h}.Probe(t.Context(), outbound(time.Minute))
	if f := Explain(action("check:outbound", "check", err)); f.Code.Number != 50 || !strings.Contains(f.Hint, "put curl into the image") || !strings.Contains(f.Cause, "curl -v") {
		t.Errorf("%+v", f)
	}
	if h.Now().Sub(start) >= time.Second {
		t.Error("it was waited for")
	}
}

// A run that is told to stop is no failure of the way out.
func TestOutboundInterrupted(t *testing.T) {
	h := memory.New()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("told to stop")
	h.Program("/usr/bin/curl", func(host.Command) host.Output {
		cancel(stop)
		return host.Output{ExitCode: 1}
	})
	if err := (Prober{Host: h}).Probe(ctx, outbound(time.Minute)); !errors.Is(err, stop) || is[*OutboundError](err) {
		t.Error(err)
	}
}

// The command goes the way of the machine's downloads, though no file says so yet.
func TestOutboundEnvironment(t *testing.T) {
	h := memory.New()
	h.Put("/etc/ssl/certs/ca-certificates.crt", "machine's\n", 0o644)
	var env []string
	trusted := ""
	h.Program("/usr/bin/curl", func(c host.Command) host.Output {
		env = c.Env
		b, _ := h.ReadFile(egressCAs)
		trusted = string(b)
		return host.Output{}
	})
	c := outbound(time.Minute)
	c.Via = &desired.Egress{HTTPSProxy: "http://u:p@proxy:3128", NoProxy: []string{"10.0.0.0/8", ".local"}, CAs: []string{"own\n"}}
	if err := (Prober{Host: h}).Probe(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	slices.Sort(env)
	want := []string{
		"CURL_CA_BUNDLE=" + egressCAs, "HTTPS_PROXY=http://u:p@proxy:3128", "NO_PROXY=10.0.0.0/8,.local", "SSL_CERT_FILE=" + egressCAs,
		"https_proxy=http://u:p@proxy:3128", "no_proxy=10.0.0.0/8,.local",
	}
	if d := cmp.Diff(want, env); d != "" {
		t.Error(d)
	}
	if trusted != "machine's\n\nown\n" {
		t.Errorf("trusted: %q", trusted)
	}
	if _, err := h.Lstat(egressCAs); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s stays: %v", egressCAs, err)
	}
	if err := h.Remove("/etc/ssl/certs/ca-certificates.crt"); err != nil {
		t.Fatal(err)
	}
	if err := (Prober{Host: h}).Probe(t.Context(), c); err != nil || trusted != "\nown\n" {
		t.Errorf("without a bundle: %v, %q", err, trusted)
	}
}
