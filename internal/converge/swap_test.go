package converge_test

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge/kind/swap"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

const (
	swapFile = "/swapfile"
	swapUnit = "swapfile.swap"
	mib      = 1 << 20
)

// swapping is a machine that can make swap files, as long as its disk has room.
func swapping() *machine {
	h := newMachine()
	allocates(h, 64*mib)
	return h
}

// allocates is fallocate(1) of a disk of some size.
func allocates(h *machine, room int) {
	h.Program("/usr/bin/fallocate", func(c host.Command) host.Output {
		size, err := strconv.Atoi(c.Args[1])
		must(err)
		name := c.Args[len(c.Args)-1]
		have, err := h.ReadFile(name)
		must(err)
		others := 0
		if old, err := h.Lstat(swapFile); err == nil && name != swapFile {
			others = int(old.Size)
		}
		if others+size > room {
			return host.Output{ExitCode: 1, Stderr: []byte("fallocate: fallocate failed: No space left on device\n")}
		}
		f, err := h.Append(name)
		must(err)
		_, err = f.Write(make([]byte, size-len(have)))
		must(errors.Join(err, f.Close()))
		return host.Output{}
	})
}

// swapOf is a swap file of some MiB and what uses it.
func swapOf(t *testing.T, size int64) *desired.State {
	t.Helper()
	unit := managed("/etc/systemd/system/"+swapUnit, "[Unit]\nDefaultDependencies=no\n[Swap]\nWhat="+swapFile+"\n[Install]\nWantedBy=multi-user.target\n")
	file := &desired.Swap{Path: swapFile, Bytes: size * mib}
	return sealed(t, unit, file, &desired.Unit{Base: desired.Base{After: []desired.ID{unit.ID(), file.ID()}}, Name: swapUnit,
		Enablement: desired.Enabled, Activation: desired.Started})
}

// inUse says how large the swap file is, and whether it is in use: "2 active".
func inUse(h *machine) string {
	st, err := h.Unit(tctx, swapUnit)
	must(err)
	info, err := h.Lstat(swapFile)
	if err != nil && st.ActiveState != "active" { // without its file it may have failed at a boot
		return "none"
	}
	must(err)
	return fmt.Sprintf("%d %s %v", info.Size/mib, st.ActiveState, info.Mode)
}

func using(t *testing.T, what string, h *machine, want string) {
	t.Helper()
	if got := inUse(h); got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// A swap file comes, grows, and goes; it is in use whenever a run has ended, and after
// each boot.
func TestSwap(t *testing.T) {
	h := swapping()
	before := onlyFiles(h)
	p := runs(t, h, swapOf(t, 2))
	var acts []string
	for _, a := range p.Actions {
		acts = append(acts, string(a.Verb)+" "+string(a.ID))
	}
	if diff := cmp.Diff([]string{"create file:/etc/systemd/system/swapfile.swap", "create swap:/swapfile", "enable unit:swapfile.swap", "start unit:swapfile.swap"}, acts); diff != "" {
		t.Error(diff)
	}
	using(t, "new", h, "2 active -rw-------")
	converged(t, h, swapOf(t, 2))
	h.Boot()
	using(t, "after a boot", h, "2 active -rw-------")
	converged(t, h, swapOf(t, 2))
	runs(t, h, swapOf(t, 3))
	using(t, "larger", h, "3 active -rw-------")
	converged(t, h, swapOf(t, 3))
	must(h.Chmod(swapFile, 0o644))
	runs(t, h, swapOf(t, 3))
	using(t, "closed again", h, "3 active -rw-------")
	runs(t, h, sealed(t))
	using(t, "withdrawn", h, "none")
	if diff := cmp.Diff(before, onlyFiles(h)); diff != "" {
		t.Error(diff)
	}
	converged(t, h, sealed(t))
}

// onlyFiles is what stands beside berth's own state.
func onlyFiles(h *machine) map[string]string {
	out := h.Tree()
	for name := range out {
		if strings.HasPrefix(name, "/var/lib/berth") || strings.HasPrefix(name, "/run/") || name == "/var/lib" || name == "/run" {
			delete(out, name)
		}
	}
	return out
}

// A swap file goes from a disk in another machine, too.
func TestSwapGoesFromAnotherRoot(t *testing.T) {
	h := swapping()
	runs(t, h, swapOf(t, 2))
	must(h.StopUnit(tctx, swapUnit)) // as on a machine that is off
	res, err := engineOffline(h, &providers{}).Apply(t.Context(), sealed(t))
	if err != nil || len(res.Plan.Kept) > 0 {
		t.Errorf("%v, kept %q", err, res.Plan.Kept)
	}
	if _, err := h.Lstat(swapFile); err == nil {
		t.Error("the swap file is left")
	}
}

// What others left at the path is neither overwritten nor removed; an area of the right
// size is used.
func TestSwapOfOthers(t *testing.T) {
	h := swapping()
	runs(t, h, swapOf(t, 2))
	ours, err := h.ReadFile(swapFile)
	must(err)
	theirs := bytes.Replace(ours, []byte("berth"), []byte("yours"), 1)
	for name, c := range map[string]struct {
		content []byte
		refused bool
	}{
		"data":                     {[]byte("a letter"), true},
		"as much data":             {make([]byte, 2*mib), true},
		"an area of another size":  {theirs[:mib], true},
		"an area of the same size": {theirs, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := swapping()
			h.Put(swapFile, string(c.content), 0o600)
			_, err := engine(h, &providers{}).Apply(t.Context(), swapOf(t, 2))
			if c.refused != errors.Is(err, swap.ErrTaken) || !c.refused && err != nil {
				t.Fatalf("error %v", err)
			}
			if !c.refused {
				using(t, "used", h, "2 active -rw-------")
				runs(t, h, sealed(t))
			}
			if now, err := h.ReadFile(swapFile); err != nil || !bytes.Equal(now, c.content) {
				t.Errorf("changed to %d bytes, %v", len(now), err)
			}
			if st, _ := h.Unit(t.Context(), swapUnit); st.ActiveState == "active" {
				t.Error("still in use")
			}
		})
	}
}

// A file that somebody put in the place of berth's stays when swap goes.
func TestSwapReplacedByOthers(t *testing.T) {
	h := swapping()
	runs(t, h, swapOf(t, 2))
	must(h.StopUnit(t.Context(), swapUnit))
	must(h.Remove(swapFile))
	h.Put(swapFile, "a letter", 0o644)
	res, err := engine(h, &providers{}).Apply(t.Context(), sealed(t))
	if err != nil || !strings.Contains(fmt.Sprint(res.Plan.Kept), swapFile) {
		t.Errorf("%v, kept %v", err, res.Plan.Kept)
	}
	if now, err := h.ReadFile(swapFile); err != nil || string(now) != "a letter" {
		t.Errorf("%q, %v", now, err)
	}
}

// A swap file grows where the disk has no room for the old one and the new one; where it
// has none for the new one at all, the old size comes back.
func TestSwapGrowsInItsOwnRoom(t *testing.T) {
	h := crowded()
	runs(t, h, swapOf(t, 1))
	runs(t, h, swapOf(t, 2))
	using(t, "larger", h, "2 active -rw-------")
	converged(t, h, swapOf(t, 2))
	_, err := engine(h, &providers{}).Apply(t.Context(), swapOf(t, 3))
	if !errors.Is(err, swap.ErrNoRoom) {
		t.Errorf("error %v", err)
	}
	if info, err := h.Lstat(swapFile); err != nil || info.Size != 2*mib {
		t.Errorf("%+v, %v", info, err)
	}
	runs(t, h, swapOf(t, 2))
	using(t, "as before", h, "2 active -rw-------")
}

// A disk without room and a container fail the run with a cause of their own; under
// another root the file waits for the first boot.
func TestSwapOutOfReach(t *testing.T) {
	h := swapping()
	allocates(h, mib)
	_, err := engine(h, &providers{}).Apply(t.Context(), swapOf(t, 2))
	if !errors.Is(err, swap.ErrNoRoom) {
		t.Errorf("error %v", err)
	}
	if _, err := h.Lstat(host.TempName(swapFile)); err == nil {
		t.Error("the temporary file is left")
	}
	h = swapping()
	h.Put(swap.InContainer, "systemd-nspawn\n", 0o644)
	if _, err := engine(h, &providers{}).Apply(t.Context(), swapOf(t, 2)); !errors.Is(err, swap.ErrContainer) {
		t.Errorf("error %v", err)
	}
	using(t, "in a container", h, "none")
	p, err := engineOffline(h, &providers{}).Plan(t.Context(), swapOf(t, 2))
	if err != nil || !strings.Contains(fmt.Sprint(p.Deferred), string(desired.SwapID(swapFile))) {
		t.Errorf("%+v, %v", p, err)
	}
}

// A kill, an error or a power cut at any effect of coming, growing and going.
func TestSwapFaultsAnywhere(t *testing.T) {
	for name, machine := range map[string]func() *machine{"room for both": swapping, "room for one": crowded} {
		t.Run(name, func(t *testing.T) { swapFaults(t, machine) })
	}
}

// crowded is a machine whose disk has no room for an old swap file and a new one.
func crowded() *machine {
	h := swapping()
	allocates(h, 5*mib/2)
	return h
}

func swapFaults(t *testing.T, swapping func() *machine) {
	steps := []*desired.State{swapOf(t, 1), swapOf(t, 2), sealed(t)}
	for name, after := range map[string]struct {
		fault effect.Kind
		then  func(*machine)
	}{
		"error":     {effect.Fail, func(*machine) {}},
		"kill":      {effect.StopBefore, (*memory.Host).Kill},
		"power cut": {effect.StopAfter, func(h *machine) { h.PowerCut(memory.NamesOnly); h.Boot() }},
		"all lost":  {effect.StopAfter, func(h *machine) { h.PowerCut(memory.LoseAll); h.Boot() }},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range steps {
				want := swapAfter(t, swapping(), steps[:i+1])
				for n, hit := 1, true; hit; n += stride {
					h := swapping()
					for _, s := range steps[:i] {
						runs(t, h, s)
					}
					in := effect.Inject(h, effect.Plan{{At: n, Kind: after.fault, Err: syscall.EIO}})
					_, err := engine(in, &providers{}).Apply(t.Context(), steps[i])
					if hit = in.Hit() != nil; hit && err == nil && after.fault == effect.Fail {
						t.Fatalf("step %d, effect %d: nobody saw %v", i, n, in.Hit())
					}
					after.then(h)
					runs(t, h, steps[i])
					converged(t, h, steps[i])
					using(t, fmt.Sprintf("step %d, fault at %v", i, in.Hit()), h, want)
					if _, err := h.Lstat(host.TempName(swapFile)); err == nil {
						t.Errorf("step %d, fault at %v: the temporary file is left", i, in.Hit())
					}
				}
			}
		})
	}
}

func swapAfter(t *testing.T, h *machine, steps []*desired.State) string {
	for _, s := range steps {
		runs(t, h, s)
	}
	return inUse(h)
}
