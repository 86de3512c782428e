package mount

import (
	"slices"
	"strconv"
	"strings"
)

// printed are the options that the kernel prints as they are spelled, and only where they
// are in force.
var printed = []string{"ro", "nosuid", "nodev", "noexec", "noatime", "nodiratime", "sync"}

// lacks says which option that is wanted is not in force; "" where that can't be seen of
// any. Options of file systems are compared where the kernel prints one of that name.
func lacks(want, have []string) string {
	for _, o := range want {
		if slices.Contains(printed, o) && !slices.Contains(have, o) {
			return "mounted without " + o
		}
		name, value, ok := strings.Cut(o, "=")
		if !ok {
			continue
		}
		for _, other := range have {
			if is, ok := strings.CutPrefix(other, name+"="); ok && number(is) != number(value) {
				return "mounted with " + other + ", want " + o
			}
		}
	}
	return ""
}

// exceeds says which option is in force that nobody wants.
func exceeds(want, have []string) string {
	for _, o := range have {
		if slices.Contains(printed, o) && !slices.Contains(want, o) {
			return "mounted with " + o
		}
	}
	return ""
}

// units are those of sizes, in bytes.
var units = map[byte]uint64{'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30}

// number is one spelling of a number: the kernel prints a size of 1m as 1024k, and a mode
// of 0755 as 755. What is no number stays.
func number(s string) string {
	if s == "" {
		return s
	}
	digits, unit := s, uint64(1)
	if u, ok := units[s[len(s)-1]|0x20]; ok {
		digits, unit = s[:len(s)-1], u
	}
	n, err := strconv.ParseUint(digits, 10, 44)
	if err != nil {
		return s
	}
	return strconv.FormatUint(n*unit, 10)
}
