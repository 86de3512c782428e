package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/agent"
	"github.com/berth-dev/berth/internal/agent/documents"
	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/component/gpu"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host/memory"
)

// The verb ends with the code that the run is to end with.
func TestNodeGPU(t *testing.T) {
	h := memory.New()
	h.Put(gpu.SettingsFile, `{"driver":"grid"}`, 0o644)
	code, _, stderr := invoke(h, "berth", "node", "gpu")
	if code != exitcode.GPUDriver || !strings.Contains(stderr, "no NVIDIA GPU") || !strings.Contains(stderr, "hint: Give the node pool") {
		t.Errorf("code %d: %s", code, stderr)
	}
	h.Put(gpu.SettingsFile, `x`, 0o644)
	if code, _, stderr := invoke(h, "berth", "node", "gpu"); code != exitcode.Failed || !strings.Contains(stderr, gpu.SettingsFile) {
		t.Errorf("code %d: %s", code, stderr)
	}
}

// The run and the agent know which driver the machine's image was made with, as a plan does.
func TestDriverOfTheImage(t *testing.T) {
	text, err := os.ReadFile("../contract/aks/testdata/minimal.json")
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "{", `{"gpu_config":{"enable_nvidia":true,"config_gpu_driver":true},"vm_size":"Standard_NC6s_v3",`, 1))
	h := memory.New()
	h.Put("/proc/sys/kernel/hostname", "n\n", 0o444)
	h.Put("/etc/os-release", "ID=ubuntu\nVERSION_ID=24.04\nVERSION_CODENAME=noble\n", 0o644)
	h.Put(gpu.ComponentsFile, `{"GPUContainerImages":[{"downloadURL":"mcr.microsoft.com/aks/aks-gpu-cuda-lts:*","gpuVersion":{"latestVersion":"580.1-2026"}}]}`, 0o644)
	brings := func(who string, st *desired.State, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", who, err)
		}
		s, err := gpu.Read(st.Lookup(desired.FileID(gpu.SettingsFile)).(*desired.File).Content.Data())
		if err != nil || s.Version != "580.1" {
			t.Errorf("%s: %+v, %v", who, s, err)
		}
	}
	p := (&env{}).parts(h)
	p.inquiry.WithoutCloud()
	o := p.options()
	c, err := o.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := o.Facts(t.Context(), h, nil)
	if err != nil {
		t.Fatal(err)
	}
	st, err := c.Translate(facts)
	brings("the run", st, err)
	if st, err = documents.StateOf(h, &p.trial().Contract); err != nil {
		t.Fatal(err)
	}
	brings("what the run goes back to", st, err)
	keeper := (&env{}).opener(h, agent.Source{Owners: []desired.Owner{desired.OwnerAKS}}, nil, true)
	target, err := keeper.Open(t.Context(), reconcile.DocumentOf(text))
	if err != nil {
		t.Fatal(err)
	}
	brings("the agent", target.State, nil)
}
