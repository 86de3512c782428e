// Package secretname follows the Node's label that names the Secret with the
// node's configuration.
package secretname

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/yamltext"
)

// Label is the published one.
const Label = "worker.gardener.cloud/gardener-node-agent-secret-name"

// reason of the events.
const reason = "SecretNameRefused"

// ErrChanged is the answer when the configuration file names another Secret now:
// the process has to end so that systemd starts it again.
var ErrChanged = errors.New("the node's configuration is in another Secret")

// Recorder tells people.
type Recorder interface {
	Warning(reason, message string)
}

// Check keeps the name in the agent's configuration file what the label says.
type Check struct {
	Host   host.FS
	Events Recorder
	Node   *apiserver.Latest[core.Node]
	// Name is the Secret that the agent goes by, File where it is configured.
	Name, File string
}

// Run looks at each state of the Node until ctx ends. A label that is missing,
// empty or no name is refused and told: the agent stays with what it has.
func (c *Check) Run(ctx context.Context) error {
	told := ""
	for node := range c.Node.Each(ctx) {
		if node == nil {
			continue
		}
		name := node.Labels[Label]
		if name == c.Name {
			told = ""
			continue
		}
		if refused := refusal(node); refused != "" {
			if refused != told {
				slog.Warn("secret name", "node", node.Name, "error", refused)
				c.Events.Warning(reason, refused+"; the agent stays with "+c.Name)
			}
			told = refused
			continue
		}
		if c.rewrite(ctx, name) {
			return fmt.Errorf("%w: %s instead of %s", ErrChanged, name, c.Name)
		}
	}
	return nil
}

func refusal(node *core.Node) string {
	name, set := node.Labels[Label]
	switch {
	case !set:
		return "label " + Label + " of the Node is missing"
	case name == "":
		return "label " + Label + " of the Node is empty"
	}
	if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
		return fmt.Sprintf("label %s of the Node is no name of a Secret: %q: %s", Label, name, strings.Join(errs, "; "))
	}
	return ""
}

// rewrite tries until the file is written, the Node says otherwise or ctx ends.
func (c *Check) rewrite(ctx context.Context, name string) bool {
	next := apiserver.Intervals(time.Second, time.Minute)
	for {
		err := Rewrite(c.Host, c.File, name)
		if err == nil {
			return true
		}
		slog.Warn("take another secret name", "error", err)
		c.Events.Warning(reason, err.Error())
		if !apiserver.Pause(ctx, next.NextBackOff()) {
			return false
		}
		if node, _ := c.Node.Get(); node == nil || node.Labels[Label] != name {
			return false
		}
	}
}

// Rewrite sets the Secret's name in a configuration file and leaves all else in it
// as it is. A file that the agent would refuse is not written. It is whole at any time,
// mode 0600.
func Rewrite(h host.FS, file, name string) error {
	old, err := h.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the agent's configuration: %w", err)
	}
	text, err := withName(old, name)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if _, _, err := config.Parse(file, text); err != nil { // the agent would not take the name
		return err
	}
	if err := host.WriteFile(h, file, text, host.Attributes{Mode: 0o600}); err != nil {
		return fmt.Errorf("write the agent's configuration: %w", err)
	}
	return nil
}

// withName goes through JSON with its numbers kept as text: a size in bytes must
// not become a float.
func withName(text []byte, name string) ([]byte, error) {
	raw, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	var all map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	controllers, ok := all["controllers"].(map[string]any)
	if !ok {
		return nil, errors.New("controllers: expected a mapping")
	}
	osc, ok := controllers["operatingSystemConfig"].(map[string]any)
	if !ok {
		return nil, errors.New("controllers.operatingSystemConfig: expected a mapping")
	}
	osc["secretName"] = name
	if raw, err = json.Marshal(all); err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	return yamltext.FromJSON(raw)
}
