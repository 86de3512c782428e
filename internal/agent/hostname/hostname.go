// Package hostname ends the agent when the machine's name has changed: its turns, the files
// that are for it and, where kubelet has no credential yet, its Node go by the name.
package hostname

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/host"
)

// ErrChanged is the answer when the name has changed: the process has to end so
// that systemd starts it again.
var ErrChanged = errors.New("the machine's name has changed")

// every is between two looks: the kernel tells nobody.
const every = 30 * time.Second

const file = "/proc/sys/kernel/hostname"

// Read is the machine's name in lower case, as Nodes are called.
func Read(h host.FS) (string, error) {
	text, err := h.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the machine's name: %w", err)
	}
	name := strings.ToLower(strings.TrimSpace(string(text)))
	if name == "" {
		return "", errors.New("the machine has no name")
	}
	return name, nil
}

// Check compares the machine's name with the one that the agent started with.
type Check struct {
	Host host.FS
	// Started is what Read said at the start.
	Started string
}

// Run looks until ctx ends. A name that can't be read is no change.
func (c Check) Run(ctx context.Context) error {
	for apiserver.Pause(ctx, every) {
		name, err := Read(c.Host)
		if err != nil {
			slog.Warn("hostname check", "error", err)
			continue
		}
		if name != c.Started {
			return fmt.Errorf("%w from %s to %s", ErrChanged, c.Started, name)
		}
	}
	return nil
}
