package provision

import (
	"encoding/json"
	"time"

	"github.com/berth-dev/berth/internal/host"
)

// The contract's default and limit of cse_timeout, in seconds.
const (
	defaultTimeout = 900
	maxTimeout     = 21600
)

// intent is what must be known of a configuration before, and even though, it
// may be refused: how long the run may take and whether it bakes an image.
type intent struct {
	Timeout time.Duration
	Bake    bool
}

// peek reads an intent. What can't be read has its default.
func peek(h host.FS, config string) intent {
	b, err := h.ReadFile(config)
	if err != nil {
		return intent{Timeout: defaultTimeout * time.Second}
	}
	return parseIntent(b)
}

func parseIntent(b []byte) intent {
	var keys map[string]json.RawMessage
	if json.Unmarshal(b, &keys) != nil {
		return intent{Timeout: defaultTimeout * time.Second}
	}
	seconds := int64(defaultTimeout)
	var n json.Number
	if json.Unmarshal(either(keys, "cse_timeout", "cseTimeout"), &n) == nil {
		if v, err := n.Int64(); err == nil && v > 0 && v <= maxTimeout {
			seconds = v
		}
	}
	var bake bool
	_ = json.Unmarshal(either(keys, "pre_provision_only", "preProvisionOnly"), &bake) // false where it is no boolean
	return intent{Timeout: time.Duration(seconds) * time.Second, Bake: bake}
}

func either(keys map[string]json.RawMessage, names ...string) json.RawMessage {
	for _, n := range names {
		if v, ok := keys[n]; ok {
			return v
		}
	}
	return nil
}
