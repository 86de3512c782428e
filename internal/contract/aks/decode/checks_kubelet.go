package decode

import (
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/contract/value"
)

// What several contracts have in common.
var (
	ownLabels, ownNamespaces            = value.OwnLabels, value.OwnNamespaces
	labelKey, labelValue, qualifiedName = value.LabelKey, value.LabelValue, value.QualifiedName
	quantity, notNegative, signOf       = value.Quantity, value.NotNegative, value.SignOf
)

// threshold of an eviction signal: a quantity or a percentage.
func threshold(s string) string {
	if share, ok := strings.CutSuffix(s, "%"); ok {
		f, err := strconv.ParseFloat(strings.TrimRight(share, "%"), 32)
		return unless(err == nil && f >= 0 && f <= 100, "expected 0% to 100%")
	}
	sign, ok := signOf(s)
	return unless(ok && sign > 0, `expected a quantity above 0 or a percentage, e.g. "750Mi" or "10%"`)
}

// gracePeriod of a soft threshold.
func gracePeriod(s string) string {
	d, err := time.ParseDuration(s)
	return unless(err == nil && d >= 0, `expected a duration, not negative, e.g. "1m30s"`)
}

func quotaPeriod(s string) string {
	d, err := time.ParseDuration(s)
	return unless(err == nil && d >= time.Millisecond && d <= time.Second, "expected a duration from 1ms to 1s")
}
