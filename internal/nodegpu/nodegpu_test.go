package nodegpu

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/gpu"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

const loaded = "/sys/module/nvidia/version"

// world is a machine with its programs for GPUs, and what was run.
type world struct {
	*memory.Host
	ran []string
	// broken are how often a program fails before it succeeds, and says what it says.
	broken map[string]int
	says   map[string]string
	// installs is the version that the installer brings, "" for none.
	installs string
}

func (w *world) program(name string, does func(host.Command)) {
	w.Program("/usr/bin/"+name, func(c host.Command) host.Output {
		line := strings.Join(append([]string{name}, c.Args...), " ")
		if name == "ctr" && !slices.Contains(c.Args, "run") {
			w.ran = append(w.ran, line)
			return host.Output{ExitCode: 1} // there is nothing to clear
		}
		if n := len(w.ran); n == 0 || w.ran[n-1] != line {
			w.ran = append(w.ran, line)
		}
		if w.broken[name] > 0 {
			w.broken[name]--
			return host.Output{ExitCode: 9, Stdout: []byte(w.says[name])}
		}
		if does != nil {
			does(c)
		}
		return host.Output{}
	})
}

func device(h *memory.Host, name, vendor, class string) {
	h.Put(pciDevices+"/"+name+"/vendor", vendor+"\n", 0o444)
	h.Put(pciDevices+"/"+name+"/class", class+"\n", 0o444)
}

// withGPU is a machine with a GPU whose driver runs, unless version is "".
func withGPU(version string) *world {
	w := &world{Host: memory.New(), broken: map[string]int{}, says: map[string]string{}}
	device(w.Host, "0000:00:02.0", "0x8086", "0x030000")
	device(w.Host, "0001:00:00.0", nvidia, "0x030200")
	if version != "" {
		w.Put(loaded, version+"\n", 0o444)
		w.program("nvidia-modprobe", nil)
		w.program("nvidia-smi", nil)
	}
	w.program("ldconfig", nil)
	w.program("ctr", func(host.Command) {
		if w.installs == "" {
			return
		}
		w.Put(loaded, w.installs+"\n", 0o444)
		w.program("nvidia-modprobe", nil)
		w.program("nvidia-smi", nil)
	})
	return w
}

func (w *world) prepare(ctx context.Context, s gpu.Settings) error {
	return Node{Host: w.Host, Settings: s, Say: func(text string) { w.ran = append(w.ran, "says "+text) }}.Prepare(ctx)
}

const installer = "ctr -n k8s.io run --privileged --rm --net-host --with-ns pid:/proc/1/ns/pid" +
	" --mount type=bind,src=/opt/gpu,dst=/mnt/gpu,options=rbind --mount type=bind,src=/opt/actions,dst=/mnt/actions,options=rbind" +
	" registry.example/driver:580.1-2026 gpuinstall /entrypoint.sh install"

var (
	wanted = gpu.Settings{Size: "Standard_NC4as_T4_v3", Driver: "cuda-lts", Install: true, Image: "registry.example/driver:580.1-2026", Version: "580.1"}
	clear  = []string{"ctr -n k8s.io task rm -f gpuinstall", "ctr -n k8s.io container rm gpuinstall", "ctr -n k8s.io snapshot rm gpuinstall"}
)

func TestPrepare(t *testing.T) {
	const load, ask = "nvidia-modprobe -u -c0", "nvidia-smi"
	install := append(append([]string{"says installs the driver: registry.example/driver:580.1-2026"}, clear...), installer)
	looked := gpu.Settings{Size: wanted.Size, Driver: wanted.Driver}
	for name, c := range map[string]struct {
		arrange func(*world)
		version string
		s       gpu.Settings
		code    int
		says    string
		ran     []string
		took    time.Duration
	}{
		"it runs":           {nil, "580.1", wanted, 0, "", []string{load, ask}, 0},
		"any runs":          {nil, "535.2", looked, 0, "", []string{load, ask}, 0},
		"it is not there":   {func(w *world) { w.installs = "580.1" }, "", wanted, 0, "", append(slices.Clone(install), load, "ldconfig", ask), 0},
		"it is an old one":  {func(w *world) { w.installs = "580.1" }, "535.2", wanted, 0, "", slices.Concat([]string{load}, install, []string{load, "ldconfig", ask}), 0},
		"the old one stays": {func(w *world) { w.installs = "535.2" }, "535.2", wanted, 84, "version 535.2 runs still, 580.1 is installed: restart the machine", nil, 0},
		"it comes at the second try": {func(w *world) { w.installs, w.broken["ctr"] = "580.1", 1 }, "", wanted, 0, "",
			slices.Concat(install, clear, []string{installer, load, "ldconfig", ask}), 10 * time.Second},
		"it does not come":   {func(w *world) { w.broken["ctr"] = 9 }, "", wanted, 84, "exit code 9", nil, 20 * time.Second},
		"the installer lies": {nil, "", wanted, 84, "nvidia-modprobe", nil, 0},
		"nothing is to come": {nil, "", looked, 84, "none is to be installed", nil, 0},
		"any loads late":     {func(w *world) { w.broken["nvidia-modprobe"] = 2 }, "535.2", looked, 0, "", []string{load, ask}, 10 * time.Second},
		"any never loads":    {func(w *world) { w.broken["nvidia-modprobe"] = 99 }, "535.2", looked, 84, "none is to be installed: nvidia-modprobe", nil, 115 * time.Second},
		"nobody says which":  {nil, "", gpu.Settings{Size: "Standard_NC6", Driver: "cuda", Install: true}, 224, "names no image of the driver cuda, which Standard_NC6 takes", nil, 0},
		"it answers late":    {func(w *world) { w.broken["nvidia-smi"] = 2 }, "580.1", wanted, 0, "", []string{load, ask}, 10 * time.Second},
		"it never answers":   {func(w *world) { w.broken["nvidia-smi"] = 99 }, "580.1", wanted, 84, "exit code 9", nil, 115 * time.Second},
		"the GPU is broken": {func(w *world) {
			w.broken["nvidia-smi"], w.says["nvidia-smi"] = 99, "WARNING: infoROM is corrupted at gpu 0001:00:00.0"
		}, "580.1", wanted, 87, "exit code 9", nil, 115 * time.Second},
		"a switch without its unit": {nil, "580.1", func() gpu.Settings { s := wanted; s.Fabric = true; return s }(), 84, gpu.FabricManager, nil, 0},
		"the GPU is none": {func(w *world) {
			device(w.Host, "0001:00:00.0", nvidia, "0x020000")
		}, "580.1", wanted, 84, "no NVIDIA GPU", nil, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := withGPU(c.version)
			if c.arrange != nil {
				c.arrange(w)
			}
			start := w.Now()
			err := w.prepare(t.Context(), c.s)
			if exitcode.Known(err) != c.code || c.code != 0 && !strings.Contains(err.Error(), c.says) {
				t.Errorf("code %d: %v", exitcode.Known(err), err)
			}
			if took := w.Now().Sub(start).Round(time.Second); took != c.took {
				t.Errorf("it took %s", took)
			}
			if diff := cmp.Diff(c.ran, w.ran); c.code == 0 && diff != "" {
				t.Error(diff)
			}
		})
	}
}

// trained has the service that trains a switch.
func (w *world) trained() {
	w.Put("/usr/lib/systemd/system/"+gpu.FabricManager, "[Service]\nExecStart=/usr/bin/nv-fabricmanager\n", 0o644)
	w.Program("/usr/bin/nv-fabricmanager", nil)
}

// A switch is trained by a service that came with the driver.
func TestFabric(t *testing.T) {
	w := withGPU("580.1")
	w.trained()
	s := wanted
	s.Fabric = true
	if err := w.prepare(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if u, err := w.Unit(t.Context(), gpu.FabricManager); err != nil || u.ActiveState != "active" {
		t.Errorf("%+v, %v", u, err)
	}
}

// Who is told to stop stops.
func TestInterrupted(t *testing.T) {
	stop := errors.New("told to stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	w := withGPU("580.1")
	w.broken["nvidia-smi"] = 99
	w.Program("/usr/bin/nvidia-modprobe", func(host.Command) host.Output { cancel(stop); return host.Output{} })
	if err := w.prepare(ctx, wanted); !errors.Is(err, stop) {
		t.Error(err)
	}
}

// slow is a machine whose programs take their time, in that of a bubble.
type slow struct {
	*world
	takes map[string]time.Duration
}

func (s *slow) Run(ctx context.Context, c host.Command) (host.Output, error) {
	if wait := s.takes[c.Path]; wait > 0 && !slices.ContainsFunc(c.Args, func(a string) bool { return a == "rm" }) {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return host.Output{}, ctx.Err()
		}
	}
	return s.world.Run(ctx, c)
}

func (s *slow) StartUnit(ctx context.Context, name string, ahead ...string) error {
	select {
	case <-time.After(s.takes[name]):
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.world.StartUnit(ctx, name, ahead...)
}

func (s *slow) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestBudget: all tries of all steps have one budget, a try has no more than what is left
// of it, and the error says at which one it was over and what the one before said.
func TestBudget(t *testing.T) {
	const over = "nothing is left of the 13 minutes that the GPUs may take in all"
	for name, c := range map[string]struct {
		takes   map[string]time.Duration
		arrange func(*world)
		version string
		s       gpu.Settings
		took    time.Duration
		says    string
	}{
		"an installer that hangs": {map[string]time.Duration{"ctr": time.Hour}, nil, "", wanted, gpu.Budget,
			"at try 2 of 3: " + over + "; the one before: ctr had not ended after 10m0s"},
		"one that fails late": {map[string]time.Duration{"ctr": 5 * time.Minute}, func(w *world) { w.broken["ctr"] = 9 }, "", wanted, gpu.Budget,
			"at try 3 of 3: " + over + "; the one before: "},
		"one that leaves no time": {map[string]time.Duration{"ctr": 8*time.Minute + 50*time.Second, "nvidia-smi": time.Hour}, func(w *world) { w.installs = "580.1" }, "", wanted, gpu.Budget,
			"at try 8 of 24: " + over + "; the one before: nvidia-smi had not ended after 30s"},
		"the image's own hangs": {map[string]time.Duration{"nvidia-modprobe": time.Hour, "nvidia-smi": time.Hour}, nil, "535.2", gpu.Settings{Driver: "cuda-lts"}, 24*30*time.Second - 5*time.Second,
			"none is to be installed: nvidia-modprobe had not ended after 25s"},
		"a switch that is never trained": {map[string]time.Duration{gpu.FabricManager: time.Hour}, nil, "580.1", gpu.Settings{Driver: "cuda-lts", Fabric: true}, gpu.Budget,
			over},
		"partitions that are never made": {map[string]time.Duration{"nvidia-smi": 20 * time.Second, gpu.FabricManager: 11*time.Minute + 50*time.Second}, func(w *world) { w.trained() }, "580.1",
			gpu.Settings{Driver: "cuda-lts", Fabric: true, Partitions: []gpu.Partition{{ID: "19", Slices: "1g"}}}, gpu.Budget, over},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := withGPU(c.version)
				if c.arrange != nil {
					c.arrange(w)
				}
				start := time.Now()
				err := Node{Host: &slow{w, c.takes}, Settings: c.s, Say: func(string) {}}.Prepare(t.Context())
				if exitcode.Known(err) != exitcode.GPUDriver || !strings.Contains(err.Error(), c.says) {
					t.Errorf("code %d: %v", exitcode.Known(err), err)
				}
				if took := time.Since(start); took != c.took {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}
