package agent

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/agent/token"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// TestReset: what the machine was before the agent came, it is again.
func TestReset(t *testing.T) {
	h := memory.New()
	h.Put("/usr/local/bin/berth", "program", 0o755)
	h.Put("/etc/theirs", "theirs", 0o644)
	h.PutDir(config.CredentialsDir)
	h.PutDir("/run/berth")
	own := func(tree map[string]string) map[string]string {
		for p := range tree {
			if p == "/var/lib/berth" || strings.HasPrefix(p, "/var/lib/berth/") || strings.HasPrefix(p, "/run/berth") {
				delete(tree, p)
			}
		}
		return tree
	}
	before := own(h.Tree("/"))
	apply := func(ctx context.Context, st *desired.State) (*converge.Result, error) {
		return converge.New(converge.Options{Host: h, Command: "test"}).Apply(ctx, st)
	}
	st, err := Setup(h, &ledger.Reader{}, "/usr/local/bin/berth", config.BaseDir)
	if err != nil {
		t.Fatal(err)
	}
	osc := &desired.State{Owner: desired.OwnerOSC}
	osc.Add(&desired.File{Path: "/etc/theirs", Content: desired.Text("ours"), Mode: 0o600, Life: desired.Managed},
		&desired.File{Path: "/etc/new/a", Content: desired.Text("ours"), Mode: 0o600, Life: desired.Managed})
	if err := osc.Seal(); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*desired.State{st, osc} {
		if _, err := apply(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	h.Put(config.Kubeconfig, "x", 0o600)
	h.Put("/var/lib/token/token", "x", 0o640)
	h.Put(token.NotePath, `{"files":{"/var/lib/token/token":["2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"]},"dirs":["/var/lib/token"]}`, 0o600)
	remembered := []string{reconcile.RecordPath, keptConfig, keptOptions}
	for _, p := range remembered {
		h.Put(p, "{}", 0o600)
	}
	for range 2 {
		kept, err := Reset(t.Context(), h, apply)
		if err != nil || len(kept) > 0 {
			t.Fatal(err, kept)
		}
		if there, err := There(h); err != nil || there {
			t.Error("the agent is still there", err)
		}
		if d := cmp.Diff(before, own(h.Tree("/"))); d != "" {
			t.Error(d)
		}
		for _, p := range remembered {
			if _, err := h.Lstat(p); err == nil {
				t.Errorf("%s is left", p)
			}
		}
		if s, _ := h.Unit(t.Context(), config.Unit); s.LoadState != "not-found" {
			t.Error(s.LoadState)
		}
	}
}

// An agent is there from its bootstrap on, until a reset is at its end; a unit of somebody
// else's is none.
func TestThere(t *testing.T) {
	h := memory.New()
	h.PutDir("/run/berth")
	want := func(what string, want bool) {
		t.Helper()
		if there, err := There(h); err != nil || there != want {
			t.Errorf("%s: %t, %v", what, there, err)
		}
	}
	want("nothing", false)
	h.Put(unitFile, "[Service]\nExecStart=/theirs\n", 0o644)
	h.Put(config.Kubeconfig, "theirs", 0o600)
	want("somebody else's", false)
	h.Put(keptConfig, "x", 0o600)
	want("an agent that has begun", true)
	if err := h.Remove(keptConfig); err != nil {
		t.Fatal(err)
	}
	h.Put("/usr/local/bin/berth", "program", 0o755)
	st, err := Setup(h, &ledger.Reader{}, "/usr/local/bin/berth", config.BaseDir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := converge.New(converge.Options{Host: h, Command: "test"}).Apply(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	want("its unit", true)
}

// What a NodeConfig out of the Secret asked for goes with the agent; that of another
// source's documents stays.
func TestResetTakesTheDocumentsOfTheSecret(t *testing.T) {
	h := memory.New()
	h.PutDir("/run/berth")
	apply := func(ctx context.Context, st *desired.State) (*converge.Result, error) {
		return converge.New(converge.Options{Host: h, Command: "test"}).Apply(ctx, st)
	}
	for _, owner := range []desired.Owner{desired.OwnerOSC, desired.OwnerNode} {
		st := &desired.State{Owner: owner}
		st.Add(&desired.File{Path: "/etc/" + string(owner), Content: desired.Text("x"), Mode: 0o600, Life: desired.Managed})
		if err := st.Seal(); err != nil {
			t.Fatal(err)
		}
		if _, err := apply(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	h.Put(reconcile.RecordPath, `{"owner":"node"}`, 0o600)
	if kept, err := Reset(t.Context(), h, apply); err != nil || len(kept) > 0 {
		t.Fatal(err, kept)
	}
	if _, err := h.Lstat("/etc/node"); err == nil {
		t.Error("the Secret's document is left")
	}
	if _, err := h.Lstat("/etc/osc"); err != nil {
		t.Error(err)
	}
}

// A program that a unit of another contract starts stays as long as one does.
func TestResetLeavesAProgramThatIsNamed(t *testing.T) {
	const (
		link, program = "/opt/bin/gardener-node-agent", "/opt/bin/.berth-agent/k/gardener-node-agent"
		spare         = "/opt/bin/.berth-agent/j/gardener-node-agent"
		dropIn        = "/etc/systemd/system/kubelet.service.d/30-firewall.conf"
	)
	for name, word := range map[string]string{"the link": link, "the copy": program} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			h.PutDir("/run/berth")
			apply := func(ctx context.Context, st *desired.State) (*converge.Result, error) {
				return converge.New(converge.Options{Host: h, Command: "test"}).Apply(ctx, st)
			}
			put := func(o desired.Owner, rs ...desired.Resource) {
				t.Helper()
				st := &desired.State{Owner: o}
				st.Add(rs...)
				if err := st.Seal(); err != nil {
					t.Fatal(err)
				}
				if _, err := apply(t.Context(), st); err != nil {
					t.Fatal(err)
				}
			}
			file := func(p, text string, mode desired.Mode) *desired.File {
				return &desired.File{Path: p, Content: desired.Text(text), Mode: mode, Life: desired.Managed}
			}
			put(desired.OwnerBerth, file(program, "program", 0o755), file(spare, "program", 0o755), &desired.Link{Path: link, Target: program},
				file(unitFile, "[Service]\nExecStart="+link+"\n", 0o644), file(unitFile+".d/x.conf", "[Service]\nExecStop="+spare+"\n", 0o644))
			put(desired.OwnerAKS, file(dropIn, "[Service]\nExecStartPre=-"+word+" node firewall\nExecStop="+spare+"2\n", 0o644))
			for range 2 {
				kept, err := Reset(t.Context(), h, apply)
				if err != nil || !slices.Contains(kept, word+": "+dropIn+" names it") {
					t.Fatal(err, kept)
				}
				if text, err := h.ReadFile(program); err != nil || string(text) != "program" {
					t.Error("the program is gone", err)
				}
				if to, err := h.Readlink(link); (err == nil && to == program) != (word == link) {
					t.Error("the link", to, err)
				}
				for _, p := range []string{spare, unitFile} {
					if _, err := h.Lstat(p); err == nil {
						t.Errorf("%s is left", p)
					}
				}
			}
			put(desired.OwnerAKS)
			if kept, err := Reset(t.Context(), h, apply); err != nil || len(kept) > 0 {
				t.Error(err, kept)
			}
			if _, err := h.Lstat("/opt/bin"); err == nil {
				t.Error("a program is left")
			}
		})
	}
}
