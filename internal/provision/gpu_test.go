package provision

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/gpu"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/nodegpu"
)

// driven is a machine whose unit for GPUs does what it does on a real one.
func driven(t *testing.T) *memory.Host {
	t.Helper()
	h := memory.New()
	for _, name := range []string{"/usr/bin/berth", "/usr/bin/service"} {
		h.Program(name, func(host.Command) host.Output { return host.Output{} })
	}
	for _, name := range []string{containerd.Unit, kubelet.Unit} {
		h.Put("/usr/lib/systemd/system/"+name, "[Service]\nExecStart=/usr/bin/service\n[Install]\nWantedBy=multi-user.target\n", 0o644)
	}
	h.Behave(gpu.Unit, func(memory.Start) memory.Outcome {
		text, err := h.ReadFile(gpu.SettingsFile)
		if err != nil {
			t.Error(err)
		}
		s, err := gpu.Read(text)
		if err != nil {
			t.Error(err)
		}
		err = nodegpu.Node{Host: h, Settings: s, Say: func(string) {}}.Prepare(t.Context())
		return memory.Outcome{Status: int32(exitcode.Known(err))}
	})
	return h
}

func answering(h *memory.Host) {
	h.Put("/sys/bus/pci/devices/0001:00:00.0/vendor", "0x10de\n", 0o444)
	h.Put("/sys/bus/pci/devices/0001:00:00.0/class", "0x030200\n", 0o444)
	h.Put("/sys/module/nvidia/version", "580.1\n", 0o444)
	for _, name := range []string{"nvidia-modprobe", "nvidia-smi"} {
		h.Program("/usr/bin/"+name, func(host.Command) host.Output { return host.Output{} })
	}
}

// gpuState is a node of which kubelet waits for GPUs.
func gpuState(t *testing.T, s gpu.Settings) *desired.State {
	t.Helper()
	st := &desired.State{Owner: desired.OwnerAKS}
	st.Add(&desired.Unit{Name: containerd.Unit, Activation: desired.Started})
	rs, err := gpu.Resources(s, gpu.Inputs{Program: "/usr/bin/berth", After: []desired.ID{desired.UnitID(containerd.Unit)}})
	if err != nil {
		t.Fatal(err)
	}
	st.Add(rs...)
	st.Add(&desired.Unit{Base: desired.Base{After: []desired.ID{desired.UnitID(gpu.Unit)}}, Name: kubelet.Unit, Enablement: desired.Enabled, Activation: desired.Started})
	if err := st.Seal(); err != nil {
		t.Fatal(err)
	}
	return st
}

func states(t *testing.T, h *memory.Host, names ...string) []string {
	t.Helper()
	var out []string
	for _, name := range names {
		u, err := h.Unit(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, u.ActiveState)
	}
	return out
}

// A machine with a GPU is ready for kubelet in one run; another finds nothing to do, a
// boot sees to the driver again, and other settings do, too.
func TestGPUs(t *testing.T) {
	h := driven(t)
	answering(h)
	e := converge.New(converge.Options{Host: h, Providers: converge.Providers{Prober: Prober{Host: h}}})
	apply := func(s gpu.Settings) *converge.Plan {
		t.Helper()
		res, err := e.Apply(t.Context(), gpuState(t, s))
		if err != nil {
			t.Fatal(err)
		}
		return res.Plan
	}
	s := gpu.Settings{Size: "Standard_NC4as_T4_v3", Driver: "cuda-lts"}
	apply(s)
	if diff := cmp.Diff([]string{"active", "active"}, states(t, h, gpu.Unit, kubelet.Unit)); diff != "" {
		t.Error(diff)
	}
	if p := apply(s); len(p.Actions) != 0 {
		t.Errorf("a second run: %v", p.Actions)
	}
	h.ForgetJobs()
	h.Flush()
	h.Boot()
	did := func(want ...string) {
		t.Helper()
		var jobs []string
		for _, j := range h.Jobs() {
			jobs = append(jobs, j.String())
		}
		if diff := cmp.Diff(want, jobs); diff != "" {
			t.Error(diff)
		}
		h.ForgetJobs()
	}
	did("boot "+containerd.Unit, "boot "+gpu.Unit, "boot "+kubelet.Unit)
	s.Driver = "grid"
	apply(s)
	did("restart "+gpu.Unit, "restart "+kubelet.Unit)
}

// TestBootWithoutADriver: where the driver does not come at a boot kubelet does not start,
// and the node is not Ready. Who has mended the driver starts kubelet, and the GPUs are seen
// to before it; a configuration without GPUs takes no kubelet along when their unit goes.
func TestBootWithoutADriver(t *testing.T) {
	h := driven(t)
	answering(h)
	e := converge.New(converge.Options{Host: h, Providers: converge.Providers{Prober: Prober{Host: h}}})
	with := gpuState(t, gpu.Settings{Size: "Standard_NC4as_T4_v3", Driver: "cuda-lts"})
	if _, err := e.Apply(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	stand := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, states(t, h, gpu.Unit, kubelet.Unit)); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}
	if err := h.Remove("/usr/bin/nvidia-modprobe"); err != nil {
		t.Fatal(err)
	}
	h.Flush()
	h.Boot()
	stand("the driver is gone", "failed", "inactive")
	if err := h.StartUnit(t.Context(), kubelet.Unit); err == nil {
		t.Error("kubelet starts without a driver")
	}
	answering(h)
	if err := h.StartUnit(t.Context(), kubelet.Unit); err != nil {
		t.Error(err)
	}
	stand("the driver is mended", "active", "active")
	without := &desired.State{Owner: desired.OwnerAKS}
	without.Add(&desired.Unit{Name: containerd.Unit, Activation: desired.Started},
		&desired.Unit{Name: kubelet.Unit, Enablement: desired.Enabled, Activation: desired.Started})
	if err := without.Seal(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Apply(t.Context(), without); err != nil {
		t.Fatal(err)
	}
	stand("nobody asks for GPUs", "inactive", "active")
	if p, err := e.Plan(t.Context(), without); err != nil || len(p.Actions) > 0 {
		t.Errorf("%v, %v", p, err)
	}
}

// Without a GPU the run ends soon, with a code that says so, and kubelet does not run.
func TestNoGPU(t *testing.T) {
	h := driven(t)
	e := converge.New(converge.Options{Host: h, Providers: converge.Providers{Prober: Prober{Host: h}}})
	start := h.Now()
	_, err := e.Apply(t.Context(), gpuState(t, gpu.Settings{Size: "Standard_D4ds_v5", Driver: "cuda-lts"}))
	if f := Explain(err); f.Code.Number != exitcode.GPUDriver || !errors.Is(err, nodegpu.ErrNoGPU) {
		t.Errorf("%+v", f)
	}
	if took := h.Now().Sub(start); took > gpu.Appears+time.Second {
		t.Errorf("it took %s", took)
	}
	if diff := cmp.Diff([]string{"inactive", "inactive"}, states(t, h, gpu.Unit, kubelet.Unit)); diff != "" {
		t.Error(diff)
	}
}

// What the unit ended with is the run's own code; a pull that fails is the driver's.
func TestExplainGPU(t *testing.T) {
	job := func(status int32) error {
		return action(desired.UnitID(gpu.Unit), converge.VerbStart, &converge.UnitError{Unit: gpu.Unit,
			Err: &host.JobError{Unit: gpu.Unit, Job: "start", Result: "failed", Status: host.UnitStatus{ExecMainStatus: status}}})
	}
	for name, c := range map[string]struct {
		err  error
		code int
	}{
		"a driver":      {job(84), 84},
		"a broken GPU":  {job(87), 87},
		"no decision":   {job(224), 224},
		"anything else": {job(1), 84},
		"no job":        {action(desired.UnitID(gpu.Unit), converge.VerbStart, errors.New("x")), 84},
		"the plugin":    {action(desired.UnitID(gpu.DevicePlugin), converge.VerbStart, errors.New("x")), 86},
		"allocation":    {action(desired.UnitID(gpu.DRADriver), converge.VerbStart, errors.New("x")), 129},
		"no services":   {action(desired.ArtifactID(gpu.Artifact), converge.VerbFetch, &artifact.AbsentError{}), 235},
		"its image":     {action(desired.ImageID(gpu.Repository+"grid:1-2"), converge.VerbLoad, &artifact.PullError{Err: errors.New("x")}), 84},
	} {
		if f := Explain(c.err); f.Code.Number != c.code {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// A run that ended well has the machine start anew where its GPUs owe that, in the boot
// in which it came out and in no other.
func TestRestartForGPUs(t *testing.T) {
	h := machineOf(`{"version":"v1"}`)
	var asked []string
	h.Program("/usr/sbin/shutdown", func(c host.Command) host.Output {
		asked = append(asked, c.Args...)
		return host.Output{}
	})
	o := options(h)
	if Provision(t.Context(), o); len(asked) > 0 {
		t.Error("nothing is owed")
	}
	id, err := h.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	h.Put(nodegpu.Record, `{"bootID":"`+strings.TrimSpace(string(id))+`"}`, 0o600)
	if code := Provision(t.Context(), o); code != 0 || !slices.Equal(asked, []string{"-r", "+1"}) {
		t.Errorf("code %d: %v", code, asked)
	}
	h.Flush()
	h.Boot()
	asked = nil
	if Provision(t.Context(), options(h)); len(asked) > 0 {
		t.Error("a second one")
	}
}
