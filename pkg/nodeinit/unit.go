package nodeinit

import (
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"

	"github.com/berth-dev/berth/internal/unitname"
)

const (
	// fetched is a download that nobody has verified yet.
	fetched = Installed + ".new"
	// imageRoot is where the image's files are for a moment.
	imageRoot = "/run/gardener-node-init"
)

// unitText is the init unit. It tries for as long as it takes: a machine is often up before its token is
// known to every API server, and before its network has settled.
func (d Data) unitText() (string, error) {
	options := []*unit.UnitOption{
		option("Unit", "Description", "Fetch and start the node agent"),
		option("Unit", "Wants", "network-online.target"),
		option("Unit", "After", "network-online.target"),
		option("Unit", "StartLimitIntervalSec", "0"),
		option("Service", "Type", "oneshot"),
		option("Service", "Restart", "on-failure"),
		option("Service", "RestartSec", "5"),
		option("Service", "EnvironmentFile", "-/etc/environment"),
		option("Service", "StandardOutput", "journal+console"),
		option("Service", "StandardError", "journal+console"),
	}
	if d.Binary.Image != "" {
		options = append(options, option("Unit", "Requires", unitname.Containerd), option("Unit", "After", unitname.Containerd))
	}
	for _, command := range d.Binary.fetch() {
		options = append(options, option("Service", "ExecStartPre", command))
	}
	options = append(options,
		option("Service", "ExecStart", d.Binary.bootstrap()),
		option("Install", "WantedBy", "multi-user.target"))
	text, err := io.ReadAll(unit.Serialize(options))
	if err != nil {
		return "", fmt.Errorf("serialize %s: %w", Unit, err)
	}
	return string(text), nil
}

func option(section, name, value string) *unit.UnitOption {
	return unit.NewUnitOption(section, name, value)
}

// fetch is how the agent comes to Installed: whole and verified, or not at all.
func (b Binary) fetch() []string {
	switch {
	case b.URL != "":
		return []string{
			"mkdir -p " + path.Dir(Installed),
			// -g: brackets are brackets; -y, -Y: a server that sends nothing for half a minute is asked anew.
			"curl -gfsSL --retry 5 -y30 -Y1 -o " + fetched + " " + word(b.URL),
			"sh -c 'echo " + strings.ToLower(b.SHA256) + "  " + fetched + " | sha256sum -c'",
			"chmod 755 " + fetched,
			"sync " + fetched,
			"mv -f " + fetched + " " + Installed,
		}
	case b.Image != "":
		ref, _ := reference(b.Image)
		return []string{
			"mkdir -p " + path.Dir(Installed) + " " + imageRoot,
			"ctr images pull --hosts-dir /etc/containerd/certs.d " + ref,
			// A start that was cut off has left the image mounted.
			"sh -c 'ctr images unmount --rm " + imageRoot + " 2>/dev/null || :'",
			"ctr images mount " + ref + " " + imageRoot,
			"install -m755 " + word(path.Join(imageRoot, b.PathInImage)) + " " + fetched,
			"sync " + fetched,
			"mv -f " + fetched + " " + Installed,
			"ctr images unmount --rm " + imageRoot,
		}
	}
	return nil
}

// bootstrap is the agent's first call, under the name that its file has.
func (b Binary) bootstrap() string {
	program := b.Path
	if program == "" {
		program = Installed
	}
	if path.Base(program) == path.Base(Installed) {
		return word(program) + " bootstrap --config-dir=" + Dir
	}
	return word(program) + " agent bootstrap --config-dir=" + Dir
}

// word is one argument of a command line of systemd, which knows $ and % as signs of its own.
func word(s string) string {
	return strings.NewReplacer("%", "%%", "$", "$$").Replace(s)
}
