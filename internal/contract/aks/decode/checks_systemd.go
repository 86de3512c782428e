package decode

import (
	"math"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/internal/lazyregexp"
)

// The grammar of systemd's Limit settings (systemd.exec): infinity or a number, or soft:hard. Numbers are those of
// strtoull with base 0 (rlimit_parse_u64, basic/rlimit-util.c); sizes have suffixes to the base 1024, each smaller
// than the one before (parse_size, basic/parse-util.c). A test has systemd read both.
var (
	countForm = lazyregexp.New(`^[ \t]*\+?(?:0[xX][0-9A-Fa-f]+|0[bB][01]+|0[oO][0-7]+|0[0-7]*|[1-9][0-9]*)$`)
	sizeForm  = lazyregexp.New(`^[ \t]*\+?([0-9]+)(\.[0-9]*)?[ \t]*([BKMGTPE]?)[ \t]*`)
)

func limitOfCount(s string) string {
	return limit(s, "expected a number, soft:hard, or infinity", func(s string) (float64, bool) {
		if !countForm().MatchString(s) {
			return 0, false
		}
		n, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimLeft(s, " \t"), "+"), 0, 64)
		return float64(n), err == nil
	})
}

func limitOfSize(s string) string {
	return limit(s, `expected a size, e.g. "64M", soft:hard, or infinity`, size)
}

const suffixes = "BKMGTPE"

// size adds up parts like 1G 500M.
func size(s string) (total float64, ok bool) {
	unit := len(suffixes)
	for first := true; s != "" || first; first = false {
		m := sizeForm().FindStringSubmatch(s)
		if m == nil {
			return 0, false
		}
		this := strings.Index(suffixes, m[3])
		if !first && this >= unit {
			return 0, false
		}
		n, err := strconv.ParseFloat(m[1]+m[2], 64)
		if total += n * math.Pow(1024, float64(this)); err != nil || total >= math.MaxUint64 {
			return 0, false
		}
		unit, s = this, s[len(m[0]):]
	}
	return total, true
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
