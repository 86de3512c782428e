package vm

import (
	"os"
	"strings"
	"time"
)

// kernelSilence is how long a kernel may say nothing before it has run anything: the longest
// pause of one that is well, on a busy host, is some ten seconds.
const kernelSilence = time.Minute

// watchKernel ends a process of QEMU whose kernel hangs before it has run any program, so
// that live starts it again: emulated processors in threads of their own do so now and
// then on a busy host. Nothing on the disk has changed by then. from is where the
// console's log was when the process began.
func (v *VM) watchKernel(r *running, p *process, from int64) {
	size, since := from, time.Now()
	for {
		select {
		case <-p.ended:
			return
		case <-time.After(time.Second):
		}
		if now := v.SerialSize(); now != size {
			size, since = now, time.Now()
		}
		said, err := os.ReadFile(v.SerialLog())
		if err != nil || int64(len(said)) < from {
			return
		}
		stage := kernelStage(string(said[from:]))
		silent := time.Since(since) >= kernelSilence
		switch {
		case stage == ranProgram, stage == noKernel && silent:
			return
		case stage == kernelOnly && silent:
			v.update(func() { r.hung = true })
			_ = p.Kill() // it has ended by itself otherwise
			return
		}
	}
}

type bootStage int

// noKernel is a machine that goes on from a saved state, or has said nothing yet.
const (
	noKernel bootStage = iota
	kernelOnly
	ranProgram
)

// kernelStage is how far a boot has come by what the console says.
func kernelStage(said string) bootStage {
	switch {
	case strings.Contains(said, "] Run /"):
		return ranProgram
	case strings.Contains(said, "] Linux version "):
		return kernelOnly
	}
	return noKernel
}
