package decode

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// The grammar of systemd's Limit settings (systemd.exec): infinity or a number, or soft:hard.
// Sizes take a suffix to the base 1024.
var (
	countForm = regexp.MustCompile(`^[0-9]+$`)
	sizeForm  = regexp.MustCompile(`^([0-9]+)(\.[0-9]+)?([BKMGTPE]?)$`)
)

func limitOfCount(s string) string {
	return limit(s, "expected a number, soft:hard, or infinity", func(s string) (float64, bool) {
		n, err := strconv.ParseUint(s, 10, 64)
		return float64(n), err == nil && countForm.MatchString(s)
	})
}

func limitOfSize(s string) string {
	return limit(s, `expected a size, e.g. "64M", soft:hard, or infinity`, func(s string) (float64, bool) {
		m := sizeForm.FindStringSubmatch(s)
		if m == nil {
			return 0, false
		}
		n, err := strconv.ParseFloat(m[1]+m[2], 64)
		return n * math.Pow(1024, float64(strings.Index("BKMGTPE", m[3]))), err == nil
	})
}

func limit(s, want string, parse func(string) (float64, bool)) string {
	one := func(s string) (float64, bool) {
		if s == "infinity" {
			return math.Inf(1), true
		}
		return parse(s)
	}
	softText, hardText, two := strings.Cut(s, ":")
	soft, ok := one(softText)
	if !two {
		return unless(ok, want)
	}
	hard, okHard := one(hardText)
	if !ok || !okHard {
		return want
	}
	return unless(soft <= hard, "the soft limit is above the hard one")
}
