package hosttest

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host"
)

// Scripts that the suite runs with "/bin/sh -c"; a host without real programs
// has to model them.
const (
	ScriptFail = "echo out; echo first >&2; echo last >&2; exit 3"
	ScriptLong = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done"
	ScriptHang = "sleep 60 & wait"
)

// Value is a kernel value that any process may set for itself.
const Value = "/proc/self/oom_score_adj"

var live = []testCase{
	{"run", runOK},
	{"run: environment", runEnvironment},
	{"run: exit code", runFails},
	{"run: only the end of the output is kept", runLong},
	{"run: bare names", runBare},
	{"run: no such program", runMissing},
	{"run: cancelled before", runCancelled},
	{"sleep", sleeps},
	{"values", values},
	{"mounts", mountTable},
	{"hard link across file systems", hardLinkAcross},
}

// offline are the cases of another root.
var offline = []testCase{
	{"programs are refused", runRefused},
	{"values are refused", valueRefused},
	{"mounts are refused", mountsRefused},
	{"packet filter is refused", filterRefused},
	{"no service manager", noSystemd},
}

func sh(script string) host.Command {
	return host.Command{Path: "/bin/sh", Args: []string{"-c", script}}
}

func runOK(t *testing.T, h host.Host, _ string) {
	out, err := h.Run(t.Context(), host.Command{Path: "/bin/cat", Stdin: []byte("a\nb")})
	must(t, err)
	if diff := cmp.Diff(host.Output{Stdout: []byte("a\nb")}, out, byText); diff != "" {
		t.Error(diff)
	}
}

// byText takes no output and empty output for equal.
var byText = cmp.Comparer(bytes.Equal)

func runEnvironment(t *testing.T, h host.Host, _ string) {
	out, err := h.Run(t.Context(), host.Command{Path: "/usr/bin/env", Env: []string{"A=1"}})
	must(t, err)
	if got := string(out.Stdout); got != "PATH="+host.SearchPath+"\nA=1\n" {
		t.Errorf("environment %q", got)
	}
}

func runFails(t *testing.T, h host.Host, _ string) {
	out, err := h.Run(t.Context(), sh(ScriptFail))
	var exit *host.ExitError
	if !errors.As(err, &exit) || exit.Output.ExitCode != 3 || !strings.HasSuffix(err.Error(), "exit code 3: last") {
		t.Fatalf("error %v", err)
	}
	wanted := host.Output{Stdout: []byte("out\n"), Stderr: []byte("first\nlast\n"), ExitCode: 3}
	if diff := cmp.Diff(wanted, out, byText); diff != "" {
		t.Error(diff)
	}
}

func runLong(t *testing.T, h host.Host, _ string) {
	long := sh(ScriptLong)
	for keep, want := range map[int]int{0: host.MaxOutput, 20: 20, 128 << 10: 128 << 10} {
		long.Keep = keep
		out, err := h.Run(t.Context(), long)
		must(t, err)
		if len(out.Stdout) != want || !bytes.HasSuffix(out.Stdout, []byte("line 19999\n")) {
			t.Errorf("keep %d: %d bytes, end %q", keep, len(out.Stdout), out.Stdout[max(0, len(out.Stdout)-20):])
		}
	}
}

func runBare(t *testing.T, h host.Host, _ string) {
	_, err := h.Run(t.Context(), host.Command{Path: "true"})
	must(t, err)
	var exit *host.ExitError
	if _, err := h.Run(t.Context(), host.Command{Path: "false"}); !errors.As(err, &exit) || exit.Output.ExitCode != 1 {
		t.Errorf("false: %v", err)
	}
}

func runMissing(t *testing.T, h host.Host, dir string) {
	put(t, h, dir+"/plain", "#!/bin/sh\n")
	for _, p := range []string{"berth-no-such-program", dir + "/none"} {
		_, err := h.Run(t.Context(), host.Command{Path: p})
		want(t, "run "+p, err, fs.ErrNotExist)
	}
	_, err := h.Run(t.Context(), host.Command{Path: dir + "/plain"})
	want(t, "run what is not executable", err, fs.ErrPermission)
}

func runCancelled(t *testing.T, h host.Host, _ string) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Run(ctx, host.Command{Path: "true"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// RunHangs checks that a program and what it started are killed when the context
// ends. Only for hosts with real processes.
func RunHangs(t *testing.T, h host.Host) {
	began := time.Now()
	_, err := h.Run(within(t, short), sh(ScriptHang))
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > soon {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

func sleeps(t *testing.T, h host.Host, _ string) {
	const d = 20 * time.Millisecond
	before := h.Now()
	must(t, h.Sleep(t.Context(), d))
	if slept := h.Now().Sub(before); slept < d {
		t.Errorf("slept %v of %v", slept, d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func values(t *testing.T, h host.Host, _ string) {
	if size := lstat(t, h, Value).Size; size != 0 {
		t.Errorf("size %d", size)
	}
	for _, v := range []string{"250", "300\n"} {
		must(t, h.WriteValue(Value, []byte(v)))
		expect(t, h, Value, strings.TrimSpace(v)+"\n")
	}
	want(t, "value that is not there", h.WriteValue("/proc/sys/berth/none", []byte("1")), fs.ErrNotExist)
	id, err := h.ReadFile("/proc/sys/kernel/random/boot_id")
	must(t, err)
	if len(bytes.TrimSpace(id)) != 36 {
		t.Errorf("boot ID %q", id)
	}
}

func runRefused(t *testing.T, h host.Host, _ string) {
	_, err := h.Run(t.Context(), host.Command{Path: "/bin/true"})
	want(t, "run", err, host.ErrOtherRoot)
}

func valueRefused(t *testing.T, h host.Host, _ string) {
	_, err := host.MkdirAll(h, "/proc/sys/vm")
	must(t, err)
	put(t, h, "/proc/sys/vm/x", "1")
	want(t, "value", h.WriteValue("/proc/sys/vm/x", []byte("2")), host.ErrOtherRoot)
}

func noSystemd(t *testing.T, h host.Host, _ string) {
	ctx := t.Context()
	_, err := h.Unit(ctx, "x.service")
	_, lerr := h.ListUnits(ctx, "*")
	_, werr := h.Watch(ctx, host.Watched{Units: []string{"x.service"}})
	all := []error{
		err, lerr, werr, h.DaemonReload(ctx), h.ResetFailed(ctx, "x.service"),
		h.StartUnit(ctx, "x.service"), h.StopUnit(ctx, "x.service"),
		h.RestartUnit(ctx, "x.service"), h.ReloadUnit(ctx, "x.service"),
	}
	for i, err := range all {
		if !errors.Is(err, host.ErrNoSystemd) {
			t.Errorf("method %d: %v", i, err)
		}
	}
}
