// Package footprint keeps the memory of a process small that waits most of its life.
package footprint

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// limit is how much memory the runtime tries to keep to: an idle agent needs a third
	// of it. With less than a document of 1 MB needs it would do little but collect.
	limit = 24 << 20
	// calm is how long nothing is done before memory goes back, often how long until the
	// pages of its program go back that a process has touched which does little but wait.
	// Garbage, which costs more to find, goes back each time of collects.
	calm     = 10 * time.Second
	often    = 2 * time.Minute
	collects = 5
	// percent is how much garbage there may be while there is work, as the runtime has it.
	percent = 100
)

// growth is how much the heap of a program may grow, in percent of what is in use, before
// garbage is collected: one that ends soon has more use for its cores. With the usual 100
// percent it is a fifth of what such a program costs.
const growth = 400

// Brief is for a program that ends soon. What its user sets by GOGC holds.
func Brief() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(growth)
	}
}

// Footprint is this process's.
type Footprint struct {
	rest *time.Timer
	// turns is how often memory has gone back since there was work.
	turns atomic.Int64
}

// Keep bounds the memory of this process, and gives back for the first time what its
// start took when it has come to rest. While it rests garbage is collected every ten
// minutes, or where memory comes near to its limit, and not every two minutes, as the
// runtime would: of a process that waits that is a large part of all it does. Huge pages
// are not asked for: on machines that hand them out unasked they double what a small
// heap takes.
func Keep() *Footprint {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(100)
	}
	debug.SetMemoryLimit(limit)
	_ = unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0) // without it memory is larger, no more
	f := &Footprint{}
	f.rest = time.AfterFunc(often, f.giveBack)
	f.Worked()
	return f
}

func (f *Footprint) giveBack() {
	if f.turns.Add(1)%collects == 1 {
		GiveBack()
		debug.SetGCPercent(-1)
	} else {
		_ = dropProgram() // without it memory is larger, no more
	}
	f.rest.Reset(often)
}

// Worked is called after work: what it took goes back after a while of rest.
func (f *Footprint) Worked() {
	debug.SetGCPercent(percent)
	f.turns.Store(0)
	f.rest.Reset(calm)
}

// GiveBack gives the system back what is not in use: garbage, and pages of the program's
// file, which stay in the kernel's cache and come back when they are touched.
func GiveBack() {
	debug.FreeOSMemory()
	_ = dropProgram() // without it memory is larger, no more
}

// large is a document after which memory goes back to the system at once, in bytes.
const large = 256 << 10

// Release gives back what a document of so many bytes took, where that is much.
func Release(size int) {
	if size > large {
		GiveBack()
	}
}

// dropProgram unmaps the pages of the program's file that are as they are in the file.
func dropProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range unchanged(string(maps), program) {
		if _, _, e := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED); e != 0 {
			errs = append(errs, e)
		}
	}
	return errors.Join(errs...)
}

// mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// unchanged reads /proc/PID/smaps, and returns the mappings of a file that the process
// can't write and has no page of its own in. What the linker has relocated before it
// was made read-only is in such pages, and is not in the file. Private_Dirty does not
// tell them: it counts pages of a file that was just written, too.
func unchanged(smaps, file string) (out []mapping) {
	var at *mapping
	fields := map[string]string{}
	end := func() {
		if at != nil && fields["Anonymous:"] == "0" && fields["Swap:"] == "0" {
			out = append(out, *at)
		}
		at = nil
		clear(fields)
	}
	for line := range strings.Lines(smaps) {
		switch f := strings.Fields(line); {
		case len(f) == 0:
		case !strings.HasSuffix(f[0], ":"):
			end()
			if start, stop, ok := readOnly(line, file); ok {
				at = &mapping{start, stop}
			}
		case len(f) > 1:
			fields[f[0]] = f[1]
		}
	}
	end()
	return out
}

// readOnly reads a mapping's first line, and says whether it is of pages of a file
// that the process can't write.
func readOnly(line, file string) (start, end uintptr, ok bool) {
	f := strings.Fields(line)
	if len(f) < 6 || strings.Join(f[5:], " ") != file || f[1] != "r-xp" && f[1] != "r--p" {
		return 0, 0, false
	}
	n, err := fmt.Sscanf(f[0], "%x-%x", &start, &end)
	return start, end, err == nil && n == 2
}
