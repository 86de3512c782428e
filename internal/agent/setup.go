package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/selfupdate"
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

const (
	unitDir  = "/etc/systemd/system/"
	unitFile = unitDir + config.Unit
)

// Setup is what makes the agent a service of the machine: its unit runs, and what
// brought it here does so no more. r reads the ledger; program is where the agent is, told
// is what else it needs before it starts.
func Setup(h host.Host, r *ledger.Reader, program, configDir string, told ...desired.Resource) (*desired.State, error) {
	st := &desired.State{Owner: desired.OwnerBerth}
	file := &desired.File{Path: unitFile, Content: desired.Text(unitText(program, configDir)), Mode: 0o644, Life: desired.Managed}
	unit := &desired.Unit{Name: config.Unit, Enablement: desired.Enabled, Activation: desired.Started, Triggers: []string{unitFile}}
	unit.After = []desired.ID{file.ID()}
	st.Add(file, unit)
	led, err := r.Load(h)
	if err != nil {
		return nil, err
	}
	own, err := claim(h, led, program)
	if err != nil {
		return nil, err
	}
	own = append(own, told...)
	for _, r := range own {
		unit.After = append(unit.After, r.ID())
	}
	st.Add(own...)
	gone, err := selfupdate.Retired(h, unit.ID())
	if err != nil {
		return nil, err
	}
	st.Add(gone...)
	return st, st.Seal()
}

// claim makes a program that berth put on the machine the service's, too: who asked for
// it may come to want it no more. Nothing is somebody else's program.
func claim(h host.Host, led *ledger.Ledger, program string) ([]desired.Resource, error) {
	if !led.Made(program) {
		return nil, nil
	}
	to, err := h.Readlink(program)
	if err != nil || selfupdate.Called(to) != program {
		own, err := claimFile(h, program)
		return []desired.Resource{own}, err
	}
	own, err := claimFile(h, to)
	link := &desired.Link{Path: program, Target: to}
	link.After = []desired.ID{own.ID()}
	return []desired.Resource{own, link}, err
}

func claimFile(h host.Host, program string) (*desired.Artifact, error) {
	own := &desired.Artifact{Name: "agent", Files: []desired.ArtifactFile{{Path: program}}}
	info, err := h.Lstat(program)
	if err != nil {
		return own, fmt.Errorf("look for this program: %w", err)
	}
	own.Files[0].Mode = desired.Mode(info.Mode.Perm())
	return own, nil
}

// IsService says whether Setup made the agent a service of the machine, and no other
// agent came in its place since.
func IsService(h host.FS) (bool, error) {
	text, err := h.ReadFile(unitFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the agent's unit: %w", err)
	}
	return unitfile.IsOurs(string(text)) || selfupdate.InForce(h, string(text)), nil
}

func unitText(program, configDir string) string {
	command := unitfile.Word(program)
	if path.Base(program) != "gardener-node-agent" {
		command += " agent"
	}
	return unitfile.Text(
		unitfile.In("Unit", "Description", "berth's node agent",
			"Wants", "network-online.target", "After", "network-online.target"),
		append(unitfile.In("Service", "Type", "notify", "NotifyAccess", "main",
			"ExecStart", command+" --config-dir="+unitfile.Word(configDir),
			"Restart", "always", "RestartSec", "5", "WatchdogSec", "60"), hardening()...),
		unitfile.In("Install", "WantedBy", "multi-user.target"))
}

// hardening is what neither the agent nor a program that it starts needs. All of it is a
// filter of system calls. What systemd.exec(5) makes with a mount namespace is not here: the
// agent mounts for the whole machine. Nor are NoNewPrivileges=, which takes nothing from root
// and may keep SELinux from giving the agent its domain; MemoryDenyWriteExecute=, which stops
// what the distribution hooks into update-ca-certificates (Java); and RestrictSUIDSGID= and
// UMask=, since modes are the document's.
func hardening() []*unitfile.Setting {
	return unitfile.In("Service",
		"LockPersonality", "yes", "RestrictRealtime", "yes", "RestrictNamespaces", "yes",
		"RestrictAddressFamilies", "AF_UNIX AF_INET AF_INET6 AF_NETLINK",
		"SystemCallArchitectures", "native",
		"SystemCallFilter", "~@cpu-emulation @debug @obsolete @raw-io", "SystemCallErrorNumber", "EPERM")
}
