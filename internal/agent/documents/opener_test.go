package documents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/agent"
	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/provision"
)

func openerOf(h host.Host) *Opener {
	return &Opener{Host: h, Source: agent.Source{Owners: []desired.Owner{desired.OwnerOSC, desired.OwnerNode}}, Release: func(int) {},
		Providers: func() Providers {
			return Providers{
				Inquiry: &provision.Inquiry{Host: h, Agent: func(host.FS) (bool, error) { return false, nil },
					Source: provision.FactsSource{Version: func(context.Context, host.Host, string) (string, error) { return "", nil }}},
				Engine: func(Applied) *converge.Engine { return converge.New(converge.Options{Host: h, Command: "test"}) },
			}
		}}
}

const oscHead = "apiVersion: extensions.gardener.cloud/v1alpha1\nkind: OperatingSystemConfig\n"

// BenchmarkOpen opens a document of 1 MB: what the agent does before a plan is made.
func BenchmarkOpen(b *testing.B) {
	text := oscHead + "spec:\n  files:\n"
	for i := range 200 {
		text += fmt.Sprintf("  - path: /etc/large/%03d\n    content: {inline: {encoding: b64, data: %s}}\n", i, strings.Repeat("QUJD", 1300))
	}
	o, d := openerOf(memory.New()), reconcile.DocumentOf([]byte(text))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := o.Open(b.Context(), d); err != nil {
			b.Fatal(err)
		}
	}
}

// TestOpenNodeConfig: the agent resolves what a NodeConfig names as apply does. What is
// missing may come, what is wrong stays so.
func TestOpenNodeConfig(t *testing.T) {
	text, err := os.ReadFile("../../contract/node/testdata/minimal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, "agent: {keep: true}\n"...)
	ca, err := os.ReadFile("../../contract/node/testdata/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	h := memory.New()
	h.Put("/etc/berth/ca.pem", string(ca), 0o644)
	h.Put("/proc/sys/kernel/hostname", "n\n", 0o444)
	o := openerOf(h)
	d := reconcile.DocumentOf(text)
	target, err := o.Open(t.Context(), d)
	if err != nil || o.Owner(d) != desired.OwnerNode || target.State.Owner != desired.OwnerNode || len(target.State.Unhandled) > 0 {
		t.Fatal(err, o.Owner(d), target)
	}
	if err := h.Remove("/etc/berth/ca.pem"); err != nil {
		t.Fatal(err)
	}
	if _, err = o.Open(t.Context(), d); err == nil || is[*reconcile.RefusedError](err) || !strings.Contains(err.Error(), "cluster.caFile") {
		t.Errorf("without the CA: %v", err)
	}
}

// TestOpenRefuses: a source takes documents of its own kinds, and says what it wants.
func TestOpenRefuses(t *testing.T) {
	const node, osc = "apiVersion: berth.dev/v1alpha1\nkind: NodeConfig\n", oscHead
	osConfig, all := []desired.Owner{desired.OwnerOSC}, []desired.Owner{desired.OwnerOSC, desired.OwnerNode}
	for name, c := range map[string]struct {
		source     agent.Source
		text, want string
	}{
		"a NodeConfig besides that of a file": {agent.Source{Owners: osConfig}, node, "the document is a NodeConfig, want a extensions"},
		"an OSC in a NodeConfig's file":       {agent.Source{Owners: []desired.Owner{desired.OwnerNode}, File: "/n"}, osc, "/n: the document is a extensions"},
		"a NodeConfig in an AKS file":         {agent.Source{Owners: []desired.Owner{desired.OwnerAKS}, File: "/a"}, node, "/a: the document is a NodeConfig, want a aks"},
		"another kind":                        {agent.Source{Owners: all}, "apiVersion: v1\nkind: Pod\n", "no contract is of"},
		"no kind":                             {agent.Source{Owners: all}, "spec: {}\n", "apiVersion"},
		"no kind in a NodeConfig's file":      {agent.Source{Owners: []desired.Owner{desired.OwnerNode}, File: "/n"}, "node: {}\n", "/n: NodeConfig refused"},
		"a wrong value":                       {agent.Source{Owners: all}, node + "cluster: {server: 7}\n", "cluster.server"},
	} {
		o := openerOf(memory.New())
		o.Source = c.source
		_, err := o.Open(t.Context(), reconcile.DocumentOf([]byte(c.text)))
		if !is[*reconcile.RefusedError](err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOpenReadsSecrets: what a document takes out of Secrets is read once for each Secret; one
// that is missing, or lacks the key, may come, so that nothing is refused for good. What
// another agent was asked for is what its files hold, without a question.
func TestOpenReadsSecrets(t *testing.T) {
	d := reconcile.DocumentOf([]byte(oscHead + "spec: {files: [" +
		"{path: /etc/a, content: {secretRef: {name: s, dataKey: a}}}, {path: /etc/b, content: {secretRef: {name: s, dataKey: b}}}]}"))
	h := memory.New()
	h.Put("/proc/sys/kernel/hostname", "n\n", 0o444)
	h.Put("/etc/a", "left a", 0o600)
	h.Put("/etc/b", "left b", 0o600)
	o, asked := openerOf(h), 0
	holds := func(target *reconcile.Target, want ...string) {
		t.Helper()
		for i, p := range []string{"/etc/a", "/etc/b"} {
			f, ok := target.State.Lookup(desired.FileID(p)).(*desired.File)
			if !ok || string(f.Content.Data()) != want[i] {
				t.Errorf("%s: %+v", p, f)
			}
		}
	}
	secret := map[string][]byte{"a": []byte("one"), "b": []byte("two")}
	o.Secrets = func(_ context.Context, name string) (*core.Secret, error) {
		if asked++; name != "s" || secret == nil {
			return nil, errors.New("no Secret " + name)
		}
		return &core.Secret{Data: secret}, nil
	}
	target, err := o.Open(t.Context(), d)
	if err != nil || asked != 1 {
		t.Fatalf("%v, asked %d times", err, asked)
	}
	holds(target, "one", "two")
	delete(secret, "b")
	if _, err := o.Open(t.Context(), d); err == nil || is[*reconcile.RefusedError](err) || !strings.Contains(err.Error(), "spec.files[1].content.secretRef") {
		t.Errorf("without the key: %v", err)
	}
	secret = nil
	if _, err := o.Open(t.Context(), d); err == nil || is[*reconcile.RefusedError](err) || !strings.Contains(err.Error(), "Secret s") {
		t.Errorf("without the Secret: %v", err)
	}
	asked = 0
	if target, err = o.Former(t.Context(), d); err != nil || asked != 0 {
		t.Fatalf("%v, asked %d times", err, asked)
	}
	holds(target, "left a", "left b")
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
