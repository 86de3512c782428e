package hosttest

import (
	"fmt"
	"strings"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// Model gives a machine in memory what the suite expects of a Debian machine:
// its few programs, the unit that hangs and the one that takes its time.
func Model(h *memory.Host) {
	h.Value(Value, "0\n")
	h.Put("/usr/bin/sleep", "", 0o755)
	h.Behave(HangingUnit, func(memory.Start) memory.Outcome { return memory.Outcome{Hang: true} })
	h.Behave(JoinedUnit, func(s memory.Start) memory.Outcome { return memory.Outcome{Slow: s.Verb == "start"} })
	h.Program("/bin/true", exits(0))
	h.Program("/usr/bin/true", exits(0))
	h.Program("/usr/bin/false", exits(1))
	h.Program("/bin/cat", func(c host.Command) host.Output { return host.Output{Stdout: c.Stdin} })
	h.Program("/bin/sh", shell)
	h.Behave(CrashingUnit, func(memory.Start) memory.Outcome { return memory.Outcome{Status: 1} })
	h.Program("/usr/bin/systemctl", func(c host.Command) host.Output {
		switch c.Args[0] {
		case "kill":
			h.Crash(c.Args[2], 9)
		case "daemon-reexec":
			h.MissEvents()
		}
		return host.Output{}
	})
	h.Program("/usr/bin/chattr", func(c host.Command) host.Output {
		h.SetImmutable(c.Args[1], c.Args[0][0] == '+')
		return host.Output{}
	})
	h.Program("/usr/bin/env", func(c host.Command) host.Output {
		env := append([]string{"PATH=" + host.SearchPath}, c.Env...)
		return host.Output{Stdout: []byte(strings.Join(env, "\n") + "\n")}
	})
}

func exits(code int) memory.Program {
	return func(host.Command) host.Output { return host.Output{ExitCode: code} }
}

func shell(c host.Command) host.Output {
	switch c.Args[1] {
	case ScriptFail:
		return host.Output{Stdout: []byte("out\n"), Stderr: []byte("first\nlast\n"), ExitCode: 3}
	case ScriptLong:
		var b strings.Builder
		for i := range 20000 {
			fmt.Fprintf(&b, "line %d\n", i)
		}
		return host.Output{Stdout: []byte(b.String())}
	}
	return host.Output{Stderr: []byte("no model of this script"), ExitCode: 127}
}
