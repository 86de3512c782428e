// Package sshd is the kind of settings that the SSH server must have in force.
package sshd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Kind is the kind of the SSH server's settings.
type Kind struct{}

var _ kind.Remover = Kind{}

// Name implements kind.Kind.
func (Kind) Name() string { return "sshd" }

// Pass implements kind.Kind.
func (Kind) Pass() kind.Pass { return kind.Tree }

// Names implements kind.Kind. The file with the lines is another resource's.
func (Kind) Names(_ *kind.View, r desired.Resource) []string { return []string{string(r.ID())} }

// Observe implements kind.Kind. Nothing is changed: the lines are read by the server
// before they take their place, and when they have, what is in force is compared, as
// in a run with nothing to do.
func (Kind) Observe(_ context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	s := r.(*desired.SSHD)
	if v.Offline {
		t.Postpone(kind.VerbCheck, "the SSH server is asked on first boot")
		return nil
	}
	note, err := json.Marshal(claim{s.Settings, s.Units})
	if err != nil {
		return err
	}
	t.StagedAfter = s.After
	t.Stage = func(ctx context.Context, _ *kind.Task) error {
		if v.Changes(v.Real(s.Path)) {
			return readable(ctx, v, s)
		}
		return inForce(ctx, v.Host, s)
	}
	t.Live = func(ctx context.Context) error { return inForce(ctx, v.Host, s) }
	return v.ClaimLive(t, string(s.ID()), string(note), "", sameSettings)
}

// claim is what the ledger keeps: what was asked for, and who has to be told when it
// no longer is.
type claim struct {
	Settings map[string]string `json:"settings"`
	Units    []string          `json:"units,omitempty"`
}

func sameSettings(a, b string) bool { return maps.Equal(claimed(a).Settings, claimed(b).Settings) }

func claimed(note string) claim {
	var c claim
	_ = json.Unmarshal([]byte(note), &c) // a spoiled one tells nobody
	return c
}

// Remove implements kind.Remover: a server that runs reads its files again, without
// the lines.
func (Kind) Remove(ctx context.Context, v *kind.View, t *kind.Task, _ string, e ledger.Entry) error {
	if v.Offline {
		return nil
	}
	var running []string
	for _, name := range claimed(e.Applied.Value).Units {
		st, err := v.Host.Unit(ctx, name)
		if err != nil {
			return err
		}
		if st.ActiveState == "active" && st.CanReload {
			running = append(running, name)
		}
	}
	if len(running) == 0 {
		return nil
	}
	t.Act(kind.VerbReload, "settings of "+strings.Join(running, ", ")+" go", kind.DisruptReload)
	t.Live = func(ctx context.Context) error { return reload(ctx, v.Host, running) }
	return nil
}

// reload has servers read their files again. One that this run masks has no use for them,
// and refuses as soon as systemd has read that, which another part of the run may ask for.
func reload(ctx context.Context, h host.Host, names []string) error {
	for _, name := range names {
		err := h.ReloadUnit(ctx, name)
		if err == nil {
			continue
		}
		if st, asked := h.Unit(ctx, name); asked != nil || st.LoadState != "masked" {
			return err
		}
	}
	return nil
}

// readable has the server read a file that is about to take its place.
func readable(ctx context.Context, v *kind.View, s *desired.SSHD) error {
	staged := host.TempName(v.Real(s.Path))
	if _, err := ask(ctx, v.Host, s.Program, "-t", "-f", staged); err != nil {
		return &Error{Doing: "read what is to be " + s.Path, Err: err}
	}
	return nil
}

// stranger is somebody for whom no Match block is meant. A server that has such
// blocks wants to know for whom it shall tell.
const stranger = "user=berth,host=berth.invalid,addr=192.0.2.1,laddr=192.0.2.2,lport=1"

// inForce compares what counts, from whatever file it comes.
func inForce(ctx context.Context, h host.Host, s *desired.SSHD) error {
	out, err := ask(ctx, h, s.Program, "-T", "-C", stranger)
	if err != nil {
		return &Error{Doing: "ask the SSH server for its settings", Err: err}
	}
	have := map[string]string{}
	for line := range strings.Lines(string(out.Stdout)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		have[strings.ToLower(key)] = value
	}
	for _, key := range slices.Sorted(maps.Keys(s.Settings)) {
		if have[key] != s.Settings[key] {
			return &Error{Doing: "set " + key + " " + s.Settings[key], Err: fmt.Errorf("%q is in force: another file says so before %s, or a Match block after it", have[key], s.Path)}
		}
	}
	return nil
}

// ask runs the server's program. The directory that it parts privileges in is made
// by its service, and does not exist before that has run.
func ask(ctx context.Context, h host.Host, program string, args ...string) (host.Output, error) {
	out, err := h.Run(ctx, host.Command{Path: program, Args: args})
	dir := missing(out)
	if err == nil || dir == "" {
		return out, err
	}
	if err := h.Mkdir(dir, 0o755); err != nil {
		return out, err
	}
	return h.Run(ctx, host.Command{Path: program, Args: args})
}

// missing is the directory that the server misses; "" for none, or for one that a
// boot would keep.
func missing(out host.Output) string {
	_, dir, found := strings.Cut(string(out.Stderr), "Missing privilege separation directory: ")
	dir, _, _ = strings.Cut(dir, "\n")
	if dir = strings.TrimSpace(dir); !found || !strings.HasPrefix(dir, "/run/") {
		return ""
	}
	return dir
}

// Error is a setting that is not in force.
type Error struct {
	Doing string
	Err   error
}

// Error adds what the server says.
func (e *Error) Error() string {
	text := e.Doing + ": " + e.Err.Error()
	if x, ok := errors.AsType[*host.ExitError](e.Err); ok && len(x.Output.Stderr) > 0 && !strings.Contains(text, strings.TrimSpace(string(x.Output.Stderr))) {
		text += ": " + strings.TrimSpace(string(x.Output.Stderr))
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
