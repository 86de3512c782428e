package nodegpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// Record says in which boot it came out that the machine has to be started anew.
const Record = paths.StateDir + "/gpu-restart.json"

type record struct {
	// BootID is the kernel's: a restart of userspace alone resets no GPU.
	BootID string `json:"bootID"`
}

// RestartOwed says whether the machine has to be started anew for its GPUs. It has been
// where it came out in another boot.
func RestartOwed(h host.FS) bool {
	r, err := recorded(h)
	return err == nil && r != nil && r.BootID == bootID(h)
}

// recorded is the record; nil where there is none.
func recorded(h host.FS) (*record, error) {
	text, err := h.ReadFile(Record)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &record{}
	if json.Unmarshal(text, r) != nil {
		return nil, nil // half a record says nothing
	}
	return r, nil
}

func bootID(h host.FS) string {
	b, err := h.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// partitions divides each GPU. GPUs that do not divide themselves before the next boot
// wait for that; pods get none of them until then.
func (n Node) partitions(ctx context.Context) error {
	if len(n.Settings.Partitions) == 0 {
		return n.forget()
	}
	ready, err := n.dividing(ctx)
	if err != nil {
		return failed("have GPUs divide themselves", err)
	}
	if !ready {
		return n.owe()
	}
	if err := n.forget(); err != nil {
		return err
	}
	if err := n.divide(ctx); err != nil {
		return failed("divide the GPUs", err)
	}
	return nil
}

// dividing switches on that GPUs divide themselves, and says whether all do by now.
func (n Node) dividing(ctx context.Context) (bool, error) {
	now, next, err := n.modes(ctx)
	if err != nil || now {
		return now, err
	}
	if !next {
		if _, err := n.smi(ctx, "-mig", "1"); err != nil {
			return false, err
		}
		if now, next, err = n.modes(ctx); err == nil && !now && !next {
			err = errors.New("nvidia-smi -mig 1 changes nothing: the GPUs can't be divided")
		}
	}
	return now, err
}

// modes says whether all GPUs divide themselves, and whether they will after a boot.
func (n Node) modes(ctx context.Context) (now, next bool, err error) {
	text, err := n.smi(ctx, "--query-gpu=mig.mode.current,mig.mode.pending", "--format=csv,noheader")
	now, next = err == nil, err == nil
	for line := range strings.Lines(text) {
		current, pending, _ := strings.Cut(line, ",")
		now = now && strings.TrimSpace(current) == "Enabled"
		next = next && strings.TrimSpace(pending) == "Enabled"
	}
	return now && text != "", next && text != "", err
}

// owe writes down that a restart is owed. One that has been and did not help is not
// asked for again.
func (n Node) owe() error {
	r, err := recorded(n.Host)
	if err != nil {
		return err
	}
	boot := bootID(n.Host)
	if r != nil && r.BootID != boot {
		return failed("have GPUs divide themselves", errors.New("the machine was started anew for it, and they do not"))
	}
	text, err := json.Marshal(record{boot})
	if err == nil {
		err = host.PrivateDir(n.Host, path.Dir(Record))
	}
	if err != nil {
		return err
	}
	n.Say("the GPUs divide themselves after the next start of the machine")
	return host.WriteFile(n.Host, Record, append(text, '\n'), host.Attributes{Mode: 0o600})
}

// forget takes the record away.
func (n Node) forget() error {
	if err := n.Host.Remove(Record); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// divide makes the partitions where the GPUs have others: nothing of them outlives a
// boot.
func (n Node) divide(ctx context.Context) error {
	have, err := n.divided(ctx)
	if err != nil {
		return err
	}
	var ids, want []string
	for _, p := range n.Settings.Partitions {
		ids, want = append(ids, p.ID), append(want, p.Slices)
	}
	slices.Sort(want)
	if len(have) > 0 && !slices.ContainsFunc(have, func(gpu []string) bool { return !slices.Equal(gpu, want) }) {
		return nil
	}
	if slices.ContainsFunc(have, func(gpu []string) bool { return len(gpu) > 0 }) {
		for _, what := range []string{"-dci", "-dgi"} {
			if _, err := n.smi(ctx, "mig", what); err != nil {
				return fmt.Errorf("take partitions away, which pods may use: %w", err)
			}
		}
	}
	_, err = n.smi(ctx, "mig", "-cgi", strings.Join(ids, ","), "-C")
	return err
}

// divided are the sizes of the partitions of each GPU, in order.
func (n Node) divided(ctx context.Context) ([][]string, error) {
	text, err := n.smi(ctx, "-L")
	var out [][]string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) < 2:
		case words[0] == "GPU":
			out = append(out, nil)
		case words[0] == "MIG" && len(out) > 0:
			size, _, _ := strings.Cut(words[1], ".")
			out[len(out)-1] = append(out[len(out)-1], size)
		}
	}
	for _, gpu := range out {
		slices.Sort(gpu)
	}
	return out, err
}

func (n Node) smi(ctx context.Context, args ...string) (string, error) {
	return n.output(ctx, 2*time.Minute, "nvidia-smi", args...)
}
