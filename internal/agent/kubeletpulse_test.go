package agent

import (
	"context"
	"errors"
	"testing"

	"github.com/berth-dev/berth/internal/host/memory"
)

// TestKubeletPulse: kubelet is asked where its configuration has it answer, also after that
// has changed. One that has no endpoint is well.
func TestKubeletPulse(t *testing.T) {
	const (
		usual  = "http://127.0.0.1:10248/healthz"
		other  = "http://10.0.0.7:10300/healthz"
		config = "/etc/kubelet.json"
	)
	h := memory.New()
	p := newKubeletPulse(h)
	answers, asked := "", []string{}
	p.get = func(_ context.Context, at string) error {
		if asked = append(asked, at); at != answers {
			return errors.New("connection refused")
		}
		return nil
	}
	unit := func(text string) {
		h.Put("/etc/systemd/system/kubelet.service", "[Service]\nExecStart="+text+"\n", 0o644)
		if err := h.DaemonReload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	runs := func(text string) {
		h.Put(config, text, 0o600)
		unit("/opt/bin/kubelet --config=" + config)
	}
	step := func(name string, well bool, times int) {
		t.Helper()
		asked = nil
		if err := p.ask(t.Context()); (err == nil) != well || len(asked) != times {
			t.Errorf("%s: %v, asked %q", name, err, asked)
		}
	}
	runs("kind: KubeletConfiguration\n")
	answers = usual
	step("as usual", true, 1)
	answers = ""
	step("it hangs", false, 1)
	runs("healthzPort: 10300\nhealthzBindAddress: 10.0.0.7\n")
	answers = other
	step("another endpoint", true, 2)
	step("known by now", true, 1)
	answers = ""
	step("it hangs there", false, 1)
	runs("healthzPort: 0\n")
	step("no endpoint", true, 1)
	step("no endpoint still", true, 0)
	runs("kind: KubeletConfiguration\n")
	answers = usual
	step("an endpoint again", true, 1)
	unit("/opt/bin/wrapper")
	answers = ""
	step("a program that is not known, which answered there", false, 1)
	p = newKubeletPulse(h)
	p.get = func(context.Context, string) error { return errors.New("connection refused") }
	if err := p.ask(t.Context()); err != nil {
		t.Errorf("a program that is not known, and never answered: %v", err)
	}
}
