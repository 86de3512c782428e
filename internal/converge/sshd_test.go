package converge_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

const (
	sshConfig = "/etc/ssh/sshd_config"
	sshDropIn = "/etc/ssh/sshd_config.d/00-berth.conf"
	sshUnit   = "ssh.service"
)

// serving is a machine with an SSH server that runs. It lets everybody in.
func serving() *machine {
	h := newMachine()
	serves(h)
	return h
}

// serves has a machine be one with an SSH server.
func serves(h *machine) {
	h.Put(sshConfig, "Include /etc/ssh/sshd_config.d/*.conf\nUsePAM yes\n", 0o644)
	h.PutDir("/etc/ssh/sshd_config.d")
	h.Put("/usr/lib/systemd/system/"+sshUnit, "[Service]\nExecStart=/usr/sbin/sshd -D\nExecReload=/bin/kill -HUP $MAINPID\n[Install]\nWantedBy=multi-user.target\n", 0o644)
	h.PutLink("/usr/lib/systemd/system/"+sshUnit, "/etc/systemd/system/multi-user.target.wants/"+sshUnit, 0)
	h.Program("/bin/kill", func(host.Command) host.Output { return host.Output{} })
	h.Program("/usr/sbin/sshd", func(c host.Command) host.Output { return sshd(h, c.Args) })
	h.Reads(sshUnit, sshConfig, sshDropIn)
	must(h.StartUnit(tctx, sshUnit))
	h.Flush()
	h.Advance(time.Minute)
	h.ForgetJobs()
}

// sshd reads its configuration as the real one does: the first word counts.
func sshd(h *machine, args []string) host.Output {
	if _, err := h.Lstat("/run/sshd"); err != nil {
		return host.Output{ExitCode: 255, Stderr: []byte("Missing privilege separation directory: /run/sshd\n")}
	}
	from := sshConfig
	if i := slices.Index(args, "-f"); i >= 0 {
		from = args[i+1]
	}
	keys, err := sshKeys(h, from)
	switch {
	case err != "":
		return host.Output{ExitCode: 255, Stderr: []byte(err + "\n")}
	case args[0] == "-T":
		return host.Output{Stdout: []byte("port 22\npubkeyauthentication " + keys + "\n")}
	}
	return host.Output{}
}

// sshKeys is whether a file, or one that it includes, lets keys in.
func sshKeys(h *machine, p string) (keys, complaint string) {
	data, _ := h.ReadFile(p)
	if strings.Contains(string(data), "Colour") {
		return "", p + ": Bad configuration option: Colour"
	}
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0][0] == '#' || words[0] == "UsePAM":
		case words[0] == "Include":
			names, _ := h.ReadDir("/etc/ssh/sshd_config.d")
			for _, n := range names {
				if k, _ := sshKeys(h, "/etc/ssh/sshd_config.d/"+n); k != "yes" && !strings.HasPrefix(n, ".") {
					return k, ""
				}
			}
		case words[0] == "PubkeyAuthentication":
			return words[1], ""
		}
	}
	return "yes", ""
}

// keyless are the resources of a server that refuses keys, by a file of its own or
// by a part of the server's.
func keyless(block bool) []desired.Resource {
	const text = "PubkeyAuthentication no\n"
	at, line := sshDropIn, desired.Resource(managed(sshDropIn, text))
	if block {
		at, line = sshConfig, &desired.Block{Path: sshConfig, Name: "keys", Lines: text, First: true, Mode: 0o600}
	}
	proof := &desired.SSHD{Base: desired.Base{After: []desired.ID{line.ID()}}, Program: "/usr/sbin/sshd", Path: at,
		Settings: map[string]string{"pubkeyauthentication": "no"}, Units: []string{sshUnit}}
	unit := &desired.Unit{Base: desired.Base{After: []desired.ID{proof.ID()}}, Name: sshUnit, ReloadTriggers: []string{at}}
	return []desired.Resource{line, proof, unit}
}

// A server that runs reads the line once it is proved, and once only; when nobody
// wants it any more the server reads that, too.
func TestKeysAreRefused(t *testing.T) {
	for name, block := range map[string]bool{"drop-in": false, "block": true} {
		t.Run(name, func(t *testing.T) {
			h := serving()
			before := others(h)
			runs(t, h, sealed(t, keyless(block)...))
			if keys, _ := sshKeys(h, sshConfig); keys != "no" || joinJobs(h) != "reload ssh.service\n" {
				t.Errorf("keys %s, jobs %s", keys, joinJobs(h))
			}
			for range 2 {
				converged(t, h, sealed(t, keyless(block)...))
				runs(t, h, sealed(t, keyless(block)...))
			}
			runs(t, h, sealed(t))
			converged(t, h, sealed(t))
			if joinJobs(h) != "reload ssh.service\nreload ssh.service\n" {
				t.Errorf("jobs %s", joinJobs(h))
			}
			after := others(h)
			delete(after, "/run/sshd")
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("withdrawn: %s", diff)
			}
		})
	}
}

// What the server would not read does not take its place; what does not count in
// the end fails the run, whoever said otherwise, and the server that runs is not
// told.
func TestKeysThatCanNotBeRefused(t *testing.T) {
	for name, c := range map[string]struct {
		arrange func(h *machine)
		block   bool
		says    string
		written bool
	}{
		"unreadable":       {func(h *machine) { h.Put(sshConfig, "Colour blue\n", 0o644) }, true, "read what is to be /etc/ssh/sshd_config: /usr/sbin/sshd -t -f /etc/ssh/", false},
		"another is first": {func(h *machine) { h.Put("/etc/ssh/sshd_config.d/00-a.conf", "PubkeyAuthentication maybe\n", 0o644) }, false, `"maybe" is in force`, true},
		"no program":       {func(h *machine) { must(h.Remove("/usr/sbin/sshd")) }, true, "/usr/sbin/sshd", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := serving()
			c.arrange(h)
			_, err := engine(h, &providers{}).Apply(t.Context(), sealed(t, keyless(c.block)...))
			if err == nil || !strings.Contains(err.Error(), c.says) || joinJobs(h) != "" {
				t.Errorf("error %v, jobs %q", err, joinJobs(h))
			}
			data, _ := h.ReadFile(keyless(c.block)[1].(*desired.SSHD).Path)
			if strings.Contains(string(data), "PubkeyAuthentication no") != c.written {
				t.Errorf("the file holds %q", data)
			}
		})
	}
}

// What somebody else says before us is found by the next run, though berth's own
// line stands as it stood.
func TestKeysAreAskedForInEachRun(t *testing.T) {
	h := serving()
	runs(t, h, sealed(t, keyless(false)...))
	h.Put("/etc/ssh/sshd_config.d/00-a.conf", "PubkeyAuthentication maybe\n", 0o644)
	if _, err := engine(h, &providers{}).Apply(t.Context(), sealed(t, keyless(false)...)); err == nil || !strings.Contains(err.Error(), "in force") {
		t.Errorf("error %v", err)
	}
}

// What somebody has the server read is taken back, and the server told, wherever a run before
// was killed; that it was told is known afterwards, also where nobody knows with what definition
// the server was started.
func TestKeysLetInByHand(t *testing.T) {
	redefined := func(h *machine) {
		h.Put("/etc/systemd/system/"+sshUnit+".d/99.conf", "[Service]\nNice=5\n", 0o644)
		must(h.DaemonReload(tctx))
	}
	for name, before := range map[string]func(h *machine){
		"as berth left it":     func(*machine) {},
		"restarted":            func(h *machine) { must(h.RestartUnit(tctx, sshUnit)) },
		"booted":               (*memory.Host).Boot,
		"without power":        func(h *machine) { h.PowerCut(memory.LoseAll); h.Boot() },
		"the clock set back":   func(h *machine) { h.SetClock(-time.Hour); h.Boot() },
		"redefined":            redefined,
		"booted and redefined": func(h *machine) { h.Boot(); h.Advance(time.Minute); redefined(h) },
		"booted, redefined and told once": func(h *machine) {
			h.Boot()
			h.Advance(time.Minute)
			redefined(h)
			h.Put(sshDropIn, "PubkeyAuthentication yes\n", 0o644)
			runs(t, h, sealed(t, keyless(false)...))
		},
	} {
		for _, block := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, block %v", name, block), func(t *testing.T) { letInByHand(t, block, before) })
		}
	}
}

func letInByHand(t *testing.T, block bool, before func(*machine)) {
	st := sealed(t, keyless(block)...)
	at := keyless(block)[1].(*desired.SSHD).Path
	for n, hit := 0, true; hit; n++ {
		h := serving()
		runs(t, h, st)
		h.Flush()
		h.Advance(time.Minute)
		before(h)
		h.Advance(time.Minute)
		text, err := h.ReadFile(at)
		must(err)
		h.Put(at, strings.Replace(string(text), "Authentication no", "Authentication yes", 1), 0o600)
		must(h.ReloadUnit(tctx, sshUnit))
		if n > 0 {
			in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
			_, _ = engine(in, &providers{}).Apply(t.Context(), st)
			hit = in.Hit() != nil
			h.Kill()
		}
		runs(t, h, st)
		converged(t, h, st)
		sshAsTold(t, h, st)
		if keys, _ := sshKeys(h, sshConfig); keys != "no" {
			t.Fatalf("killed at effect %d: keys %s", n, keys)
		}
	}
}

// A server that does not run is not started; one that somebody starts later has
// read the line.
func TestKeysOfAServerThatSleeps(t *testing.T) {
	h := serving()
	must(h.StopUnit(tctx, sshUnit))
	h.ForgetJobs()
	runs(t, h, sealed(t, keyless(false)...))
	if joinJobs(h) != "" {
		t.Errorf("jobs %s", joinJobs(h))
	}
	must(h.StartUnit(tctx, sshUnit))
	converged(t, h, sealed(t, keyless(false)...))
}

// masked is a server that is off.
func masked() []desired.Resource {
	mask := &desired.Link{Path: "/etc/systemd/system/" + sshUnit, Target: "/dev/null"}
	return []desired.Resource{mask, &desired.Unit{Base: desired.Base{After: []desired.ID{mask.ID()}}, Name: sshUnit, Activation: desired.Stopped}}
}

// A server that is off does not come back with a boot, nor when somebody starts it,
// until nobody wants it off any more: then it runs as it did.
func TestSSHOff(t *testing.T) {
	h := serving()
	before := others(h)
	runs(t, h, sealed(t, masked()...))
	converged(t, h, sealed(t, masked()...))
	if err := h.StartUnit(tctx, sshUnit); err == nil {
		t.Error("somebody could start it")
	}
	h.Boot()
	activities(t, h, map[string]string{sshUnit: "inactive"})
	converged(t, h, sealed(t, masked()...))
	runs(t, h, sealed(t))
	activities(t, h, map[string]string{sshUnit: "active"})
	if diff := cmp.Diff(before, others(h)); diff != "" {
		t.Errorf("withdrawn: %s", diff)
	}
}

// A kill, an error or a power cut at any effect of each of these lives: the run
// after it ends where an undisturbed one ends, and in the end the machine is as it
// was.
func TestSSHFaultsAnywhere(t *testing.T) {
	for name, steps := range map[string][]*desired.State{
		"drop-in": {sealed(t, keyless(false)...), sealed(t)},
		"block":   {sealed(t, keyless(true)...), sealed(t)},
		"off":     {sealed(t, masked()...), sealed(t)},
		"both":    {sealed(t, keyless(false)...), sealed(t, masked()...), sealed(t)},
	} {
		for how, then := range map[string]func(*machine){
			"error": nil, "kill": (*memory.Host).Kill, "power cut": func(h *machine) { h.PowerCut(memory.NamesOnly); h.Boot() },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				for i := range steps {
					for n, hit := 1, true; hit; n += stride {
						hit = sshFault(t, steps, i, n, then)
					}
				}
			})
		}
	}
}

// sshFault disturbs step i at effect n; it says whether there was one.
func sshFault(t *testing.T, steps []*desired.State, i, n int, then func(*machine)) bool {
	t.Helper()
	h := serving()
	for _, s := range steps[:i] {
		runs(t, h, s)
	}
	f := effect.Fault{At: n, Kind: effect.StopAfter}
	if then == nil {
		f, then = effect.Fault{At: n, Kind: effect.Fail, Err: syscall.EIO}, func(*machine) {}
	}
	in := effect.Inject(h, effect.Plan{f})
	_, err := engine(in, &providers{}).Apply(t.Context(), steps[i])
	if in.Hit() != nil && f.Kind == effect.Fail && !errors.Is(err, syscall.EIO) {
		t.Fatalf("step %d, effect %d (%v): %v", i, n, in.Hit(), err)
	}
	then(h)
	for _, s := range steps[i:] {
		runs(t, h, s)
		converged(t, h, s)
		sshAsTold(t, h, s)
	}
	return in.Hit() != nil
}

// sshAsTold proves that the server is off where it is to be, and else runs with the
// files as they are.
func sshAsTold(t *testing.T, h *machine, s *desired.State) {
	t.Helper()
	off := s.Lookup(desired.LinkID("/etc/systemd/system/"+sshUnit)) != nil
	st, err := h.Unit(tctx, sshUnit)
	must(err)
	if want := map[bool]string{true: "inactive", false: "active"}[off]; st.ActiveState != want {
		t.Fatalf("the server is %s, want %s", st.ActiveState, want)
	}
	if off {
		return
	}
	var last memory.Job
	for _, j := range h.Jobs() {
		if j.Unit == sshUnit {
			last = j
		}
	}
	for p, read := range last.Reads {
		if now, err := h.ReadFile(p); err == nil && string(now) != read || err != nil && read != "absent" {
			t.Fatalf("%s: the server runs with %q, there is %q", p, read, now)
		}
	}
}

// A distribution may have two names for the one server: both are off.
func TestSSHOffByAllNames(t *testing.T) {
	h := serving()
	h.PutLink(sshUnit, "/usr/lib/systemd/system/sshd.service", 0)
	must(h.DaemonReload(tctx))
	before := others(h)
	var all []desired.Resource
	for _, name := range []string{sshUnit, "sshd.service"} {
		mask := &desired.Link{Path: "/etc/systemd/system/" + name, Target: "/dev/null"}
		all = append(all, mask, &desired.Unit{Base: desired.Base{After: []desired.ID{mask.ID()}}, Name: name, Activation: desired.Stopped})
	}
	runs(t, h, sealed(t, all...))
	converged(t, h, sealed(t, all...))
	for _, name := range []string{sshUnit, "sshd.service"} {
		if err := h.StartUnit(tctx, name); err == nil {
			t.Errorf("somebody could start %s", name)
		}
	}
	runs(t, h, sealed(t))
	converged(t, h, sealed(t))
	activities(t, h, map[string]string{sshUnit: "active"})
	if diff := cmp.Diff(before, others(h)); diff != "" {
		t.Errorf("withdrawn: %s", diff)
	}
}

// A server that is masked in the same run has nothing to read any more, and refuses to be
// asked as soon as systemd has read that.
func TestServerIsMaskedWithItsSettings(t *testing.T) {
	const other = "/etc/systemd/system/containerd.service.d/x.conf"
	mask := &desired.Link{Path: "/etc/systemd/system/" + sshUnit, Target: "/dev/null"}
	for order, pick := range map[string]func(int) int{"first": func(int) int { return 0 }, "last": func(n int) int { return n - 1 }} {
		h := serving()
		must(h.StartUnit(tctx, "containerd.service"))
		runs(t, h, sealed(t, append(keyless(false), managed(other, "[Service]\nNice=1\n"))...))
		off := sealed(t, managed(other, "[Service]\nNice=2\n"), mask, &desired.Unit{Base: desired.Base{After: []desired.ID{mask.ID()}}, Name: sshUnit, Activation: desired.Stopped})
		if _, err := engine(h, &providers{}, func(o *converge.Options) { o.Pick = pick }).Apply(t.Context(), off); err != nil {
			t.Errorf("%s: %v", order, err)
		}
		if st, err := h.Unit(tctx, sshUnit); err != nil || st.ActiveState == "active" || st.LoadState != "masked" {
			t.Errorf("%s: %s is %s, %s, %v", order, sshUnit, st.LoadState, st.ActiveState, err)
		}
		converged(t, h, off)
	}
}

// Two owners who want different settings of the server are told of each other, before
// the server is asked.
func TestSettingsHaveAnOwner(t *testing.T) {
	h := serving()
	runs(t, h, sealed(t, keyless(false)...))
	theirs := &desired.SSHD{Program: "/usr/sbin/sshd", Path: sshDropIn, Settings: map[string]string{"pubkeyauthentication": "yes"}}
	_, err := fetching(h).Apply(t.Context(), of(desired.OwnerOSC, sealed(t, theirs)))
	refused(t, err, string(theirs.ID()), desired.OwnerOSC, desired.OwnerAKS)
	theirs.Settings["pubkeyauthentication"] = "no"
	runs(t, h, of(desired.OwnerOSC, sealed(t, theirs)))
	runs(t, h, sealed(t))
	if keys, _ := sshKeys(h, sshConfig); keys == "no" {
		t.Error("the line is still there, which its owner took back")
	}
}
