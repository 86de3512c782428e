package nodegpu

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/internal/component/gpu"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
)

// cards are GPUs that divide themselves after a boot once they are told to.
type cards struct {
	mode, pending string
	// atOnce: they need no boot. stubborn: they never do.
	atOnce, stubborn bool
	parts            [][]string
	ran              []string
}

func (c *cards) smi(cmd host.Command) host.Output {
	line := strings.Join(cmd.Args, " ")
	c.ran = append(c.ran, line)
	var out strings.Builder
	switch {
	case line == "-mig 1" && c.stubborn:
	case line == "-mig 1":
		if c.pending = "Enabled"; c.atOnce {
			c.mode = c.pending
		}
	case strings.HasPrefix(line, "--query-gpu"):
		out.WriteString(c.mode + ", " + c.pending + "\n" + c.mode + ", " + c.pending + "\n")
	case line == "-L":
		for _, parts := range c.parts {
			out.WriteString("GPU 0: NVIDIA A100 80GB PCIe (UUID: GPU-1)\n")
			for _, p := range parts {
				out.WriteString("  MIG " + p + ".10gb     Device  0: (UUID: MIG-1)\n")
			}
		}
	case line == "mig -dgi":
		c.parts = [][]string{nil, nil}
	case strings.HasPrefix(line, "mig -cgi"):
		c.parts = [][]string{{"3g", "3g"}, {"3g", "3g"}}
	}
	return host.Output{Stdout: []byte(out.String())}
}

func (c *cards) did() []string {
	return slices.DeleteFunc(slices.Clone(c.ran), func(line string) bool { return line == "" || line[0] == '-' && line != "-mig 1" })
}

func divided(t *testing.T, c *cards) (*world, gpu.Settings) {
	t.Helper()
	w := withGPU("580.1")
	w.Program("/usr/bin/nvidia-smi", c.smi)
	s := wanted
	s.Partitions, _ = gpu.Partitions("MIG3g", nil)
	return w, s
}

// GPUs that divide themselves after a boot owe one, and one only; then they are divided,
// at each boot and only where they are not.
func TestPartitions(t *testing.T) {
	c := &cards{mode: "Disabled", pending: "Disabled", parts: [][]string{nil, nil}}
	w, s := divided(t, c)
	prepare := func(what string, owed bool, did ...string) {
		t.Helper()
		c.ran = nil
		if err := w.prepare(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if diff := cmp.Diff(did, c.did(), cmpopts.EquateEmpty()); diff != "" || RestartOwed(w) != owed {
			t.Errorf("%s: owed %v, %s", what, RestartOwed(w), diff)
		}
	}
	prepare("the first time", true, "-mig 1")
	prepare("again in that boot", true)
	w.Flush()
	w.Boot()
	c.mode = "Enabled"
	prepare("after the boot", false, "mig -cgi 9,9 -C")
	prepare("again", false)
	w.Boot()
	c.parts = [][]string{nil, nil}
	prepare("after another", false, "mig -cgi 9,9 -C")
	c.parts = [][]string{{"1g"}, nil}
	prepare("others are there", false, "mig -dci", "mig -dgi", "mig -cgi 9,9 -C")
	s.Partitions = nil
	prepare("whole", false)
}

func TestPartitionsAtOnce(t *testing.T) {
	c := &cards{mode: "Disabled", pending: "Disabled", atOnce: true, parts: [][]string{nil, nil}}
	w, s := divided(t, c)
	if err := w.prepare(t.Context(), s); err != nil || RestartOwed(w) {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"-mig 1", "mig -cgi 9,9 -C"}, c.did()); diff != "" {
		t.Error(diff)
	}
}

// A boot that did not help is not asked for again.
func TestPartitionsNever(t *testing.T) {
	c := &cards{mode: "Disabled", pending: "Disabled", parts: [][]string{nil, nil}}
	w, s := divided(t, c)
	if err := w.prepare(t.Context(), s); err != nil || !RestartOwed(w) {
		t.Fatal(err)
	}
	if info, err := w.Lstat(path.Dir(Record)); err != nil || info.Mode.Perm() != 0o700 {
		t.Errorf("others may read berth's state: %v, %v", info, err)
	}
	w.Flush()
	w.Boot()
	for range 2 {
		if err := w.prepare(t.Context(), s); exitcode.Known(err) != exitcode.GPUDriver || !strings.Contains(err.Error(), "started anew for it") || RestartOwed(w) {
			t.Error(err)
		}
	}
	c = &cards{mode: "[N/A]", pending: "[N/A]", stubborn: true}
	w, s = divided(t, c)
	if err := w.prepare(t.Context(), s); exitcode.Known(err) != exitcode.GPUDriver || !strings.Contains(err.Error(), "can't be divided") || RestartOwed(w) {
		t.Error(err)
	}
}
