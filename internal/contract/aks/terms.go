package aks

import (
	"encoding/json"
	"math"
	"time"

	"github.com/berth-dev/berth/internal/contract/aks/decode"
)

// Terms are what a run must know of a configuration before, and even though, it
// may be refused.
type Terms struct {
	// Timeout is what cse_timeout gives to the whole run.
	Timeout time.Duration
	// ImageBuild is pre_provision_only: the machine is prepared for an image and
	// becomes no node.
	ImageBuild bool
	// RequireDigests refuses downloads of which nobody gives the digest. No
	// configuration of AKS says so.
	RequireDigests bool
}

// TermsOf reads them out of a text that may be no configuration. What can't be
// read has its default.
func TermsOf(data []byte) Terms {
	var keys map[string]json.RawMessage
	if json.Unmarshal(data, &keys) != nil {
		return Terms{Timeout: decode.Timeout(0)}
	}
	t := Terms{Timeout: timeout(either(keys, "cse_timeout", "cseTimeout"))}
	_ = json.Unmarshal(either(keys, "pre_provision_only", "preProvisionOnly"), &t.ImageBuild) // false where it is no boolean
	return t
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
