package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	systemdunit "github.com/coreos/go-systemd/v22/unit"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// RestoreUnit goes back to the last good contract at boot, before what was on
// trial starts. It is enabled for as long as something is on trial.
const RestoreUnit = "berth-restore.service"

const (
	restorePath = "/etc/systemd/system/" + RestoreUnit
	restoreLink = "/etc/systemd/system/multi-user.target.wants/" + RestoreUnit

	// RevertTimer does the same in this boot when a person's time is over.
	RevertTimer   = "berth-revert.timer"
	runtimeDir    = "/run/systemd/system/"
	revertUnit    = "berth-revert.service"
	revertPath    = runtimeDir + revertUnit
	timerPath     = runtimeDir + RevertTimer
	withoutBefore = "basic.target"
)

// Arm makes the note durable and enables the unit for the next boot, in an order in
// which the unit is never there without the note. program is berth; the unit comes
// before the units that before names. systemd need not read it in this boot.
func Arm(h host.FS, n *Note, program string, before []string) error {
	if err := n.Save(h); err != nil {
		return err
	}
	if err := host.WriteFile(h, restorePath, []byte(restoreText(program, before)), host.Attributes{Mode: 0o644}); err != nil {
		return fmt.Errorf("enable %s: %w", RestoreUnit, err)
	}
	return enable(h)
}

func enable(h host.FS) error {
	if target, err := h.Readlink(restoreLink); err == nil && target == restorePath {
		return nil
	}
	if _, err := host.MkdirAll(h, path.Dir(restoreLink)); err != nil {
		return fmt.Errorf("enable %s: %w", RestoreUnit, err)
	}
	err := errors.Join(removeDurably(h, restoreLink), h.Symlink(restorePath, restoreLink), h.SyncDir(path.Dir(restoreLink)))
	if err != nil {
		return fmt.Errorf("enable %s: %w", RestoreUnit, err)
	}
	return nil
}

// restoreText: systemd starts what comes after it when it has ended, well or not.
func restoreText(program string, before []string) string {
	return text(
		"Unit", "Description", "Go back to the last good configuration of this node",
		"Unit", "ConditionPathExists", notePath,
		"Unit", "RequiresMountsFor", Dir,
		"Unit", "Before", strings.Join(before, " "),
		"Service", "Type", "oneshot",
		"Service", "ExecStart", word(program)+" node restore",
		"Service", "TimeoutStartSec", "3min",
		"Install", "WantedBy", "multi-user.target")
}

// text is a unit file: triples of section, name and value.
func text(settings ...string) string {
	var all []*systemdunit.UnitOption
	for s := range slices.Chunk(settings, 3) {
		if s[2] != "" {
			all = append(all, systemdunit.NewUnitOption(s[0], s[1], s[2]))
		}
	}
	b, err := io.ReadAll(systemdunit.Serialize(all))
	if err != nil {
		panic("a reader in memory failed: " + err.Error())
	}
	return "# Written by berth; it goes when the change on trial is confirmed or taken back.\n" + string(b)
}

// word is a path on a command line (systemd.service(5)).
func word(p string) string {
	if !strings.ContainsAny(p, " \t\"'\\%$;") {
		return p
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`, `$`, `$$`).Replace(p) + `"`
}

// Orderable says whether RestoreUnit may come before a unit: those without the
// default dependencies start before it, and to order them would be a circle.
func Orderable(st host.UnitStatus) bool {
	return st.LoadState == "loaded" && path.Ext(st.ID) == ".service" && slices.Contains(st.After, withoutBefore)
}

// ArmTimer goes back in this boot when the time is over. A way back from the trial before, which
// waits for its next try or for the lock that the caller holds, ends: it would go back from this
// one at once.
func ArmTimer(ctx context.Context, h host.Host, program string, in time.Duration) error {
	if _, err := host.MkdirAll(h, path.Dir(timerPath)); err != nil {
		return fmt.Errorf("set %s: %w", RevertTimer, err)
	}
	service := text(
		"Unit", "Description", "Go back to the last good configuration of this node: nobody has confirmed the new one",
		"Unit", "ConditionPathExists", notePath,
		"Service", "Type", "oneshot",
		"Service", "ExecStart", word(program)+" node revert",
		"Service", "Restart", "on-failure", // since systemd 244; nobody else would go back in this boot
		"Service", "RestartSec", "10")
	timer := text(
		"Unit", "Description", "The time in which a change of this node has to be confirmed",
		"Timer", "OnActiveSec", fmt.Sprintf("%dms", in.Milliseconds()),
		"Timer", "AccuracySec", "1s")
	for _, step := range []func() error{
		func() error { return host.WriteFile(h, timerPath, []byte(timer), host.Attributes{Mode: 0o644}) },
		func() error { return host.WriteFile(h, revertPath, []byte(service), host.Attributes{Mode: 0o644}) },
		func() error { return h.DaemonReload(ctx) },
		func() error { return h.StopUnit(ctx, RevertTimer) },
		func() error { return h.StopUnit(ctx, revertUnit) },
		func() error { return h.ResetFailed(ctx, revertUnit) },
		func() error { return h.StartUnit(ctx, RevertTimer) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("set %s: %w", RevertTimer, err)
		}
	}
	return nil
}

// Timed says whether somebody is there who goes back in this boot when the time is over.
// systemd's timer counts it: clocks jump.
func Timed(ctx context.Context, h host.Host) (bool, error) {
	for _, name := range []string{RevertTimer, revertUnit} {
		st, err := h.Unit(ctx, name)
		if err != nil {
			return false, fmt.Errorf("ask for %s: %w", name, err)
		}
		if st.ActiveState == "active" || st.ActiveState == "activating" {
			return true, nil
		}
	}
	return false, nil
}

// Disarm ends a trial: the note goes last, so that a run that is cut off leaves it
// to the next one. What waits for a person's word is forgotten, and so is a
// credential that was replaced.
func Disarm(ctx context.Context, h host.Host, n *Note) error {
	if err := disarmTimer(ctx, h); err != nil {
		return fmt.Errorf("end the trial: %w", err)
	}
	for _, p := range []string{restoreLink, restorePath, triedPath(n.Owner), credentialPath(n.Owner), notePath} {
		if err := removeDurably(h, p); err != nil {
			return fmt.Errorf("end the trial: %w", err)
		}
	}
	return nil
}

// Drop ends a trial whose note is damaged, so that nobody knows whose it is.
func Drop(ctx context.Context, h host.Host) error {
	for _, o := range []desired.Owner{desired.OwnerAKS, desired.OwnerOSC, desired.OwnerNode, desired.OwnerBerth} {
		if err := Disarm(ctx, h, &Note{Owner: o}); err != nil {
			return err
		}
	}
	return nil
}

// Sweep removes the temporary files of a run that was cut off, of an owner's
// contracts and of trials.
func Sweep(h host.FS, o desired.Owner) error {
	for _, p := range []string{notePath, restorePath, goodPath(o), triedPath(o), credentialPath(o)} {
		if err := removeDurably(h, host.TempName(p)); err != nil {
			return fmt.Errorf("clear leftover: %w", err)
		}
	}
	return nil
}

// EndTimer has nobody go back in this boot, and ends a way back that goes on: it would bring
// back what the caller takes away. The note stays.
func EndTimer(ctx context.Context, h host.Host) error {
	return endTimer(ctx, h, func(st host.UnitStatus) bool { return st.ActiveState != "inactive" && st.ActiveState != "failed" })
}

// disarmTimer ends a way back that failed and waits for its next try. One that goes on is left
// alone: this may be it.
func disarmTimer(ctx context.Context, h host.Host) error {
	return endTimer(ctx, h, func(st host.UnitStatus) bool { return st.SubState == "auto-restart" })
}

// endTimer ends the timer, and its service where ends says so.
func endTimer(ctx context.Context, h host.Host, ends func(host.UnitStatus) bool) error {
	if _, err := h.Lstat(timerPath); err != nil {
		return nil //nolint:nilerr // there is none
	}
	if err := h.StopUnit(ctx, RevertTimer); err != nil {
		return err
	}
	st, err := h.Unit(ctx, revertUnit)
	if err == nil && ends(st) {
		err = h.StopUnit(ctx, revertUnit)
	}
	if err != nil {
		return err
	}
	for _, p := range []string{revertPath, timerPath} { // the timer last: it says that something is left
		if err := removeDurably(h, p); err != nil {
			return err
		}
	}
	return h.DaemonReload(ctx)
}

// Clear forgets all contracts and trials: those of another machine, whose disk this
// was.
func Clear(ctx context.Context, h host.Host) error {
	names, err := h.ReadDir(Dir)
	if err != nil {
		names = nil // there are none
	}
	for _, name := range names {
		if err := removeDurably(h, Dir+"/"+name); err != nil {
			return err
		}
	}
	return Disarm(ctx, h, &Note{})
}
