package provision

import (
	"encoding/json"
	"math"
	"time"

	"github.com/berth-dev/berth/internal/contract/aks/decode"
	"github.com/berth-dev/berth/internal/host"
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
		return intent{Timeout: decode.Timeout(0)}
	}
	return parseIntent(b)
}

func parseIntent(b []byte) intent {
	var keys map[string]json.RawMessage
	if json.Unmarshal(b, &keys) != nil {
		return intent{Timeout: decode.Timeout(0)}
	}
	var bake bool
	_ = json.Unmarshal(either(keys, "pre_provision_only", "preProvisionOnly"), &bake) // false where it is no boolean
	return intent{Timeout: timeout(either(keys, "cse_timeout", "cseTimeout")), Bake: bake}
}

// timeout reads a number as the decoder does: in quotes, or as 1.2e3.
func timeout(value json.RawMessage) time.Duration {
	var n json.Number
	if json.Unmarshal(value, &n) != nil {
		return decode.Timeout(0)
	}
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) > math.MaxInt32 {
		return decode.Timeout(0)
	}
	return decode.Timeout(int64(f))
}

func either(keys map[string]json.RawMessage, names ...string) json.RawMessage {
	for _, n := range names {
		if v, ok := keys[n]; ok {
			return v
		}
	}
	return nil
}
