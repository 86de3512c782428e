package aks

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/internal/desired"
)

// featuresFile is where the launcher of a published image looks for the features that
// are on, one KEY=VALUE a line; it sources nothing.
const featuresFile = "/opt/azure/containers/enabled_features.sh"

// knownFeatures are the keys that a launcher reads.
var knownFeatures = []string{"ENABLE_PROVISIONING_HOTFIX"}

// features sets keys that somebody reads, and no others: the file ends up in the
// environment of what runs as root.
func (t *translation) features() error {
	var lines strings.Builder
	for _, key := range knownFeatures {
		if value, ok := t.feature(key); ok {
			lines.WriteString(key + "=" + value + "\n")
		}
	}
	if lines.Len() > 0 {
		t.add("enabled_features", &desired.File{Path: featuresFile, Content: desired.Text(lines.String()), Mode: 0o600, Life: desired.Managed})
	}
	return nil
}

// feature is a value that fits on a line; others are dropped where they are published, too.
func (t *translation) feature(key string) (string, bool) {
	value, ok := t.cfg.GetEnabledFeatures()[key]
	return value, ok && !strings.ContainsAny(value, "\r\n\x00")
}

func (t *translation) hasFeatures() bool {
	return slices.ContainsFunc(knownFeatures, func(key string) bool { _, ok := t.feature(key); return ok })
}

// accountFeatures names the keys that are not set.
func (t *translation) accountFeatures() {
	for _, key := range slices.Sorted(maps.Keys(t.cfg.GetEnabledFeatures())) {
		reason := ""
		if _, fits := t.feature(key); !fits {
			reason = "a value is one line"
		}
		if !slices.Contains(knownFeatures, key) {
			reason = unread
		}
		if reason != "" {
			path := field.NewPath("enabled_features").Key(key)
			t.state.Unused = append(t.state.Unused, desired.FieldNote{Path: path.String(), Reason: reason})
		}
	}
}
