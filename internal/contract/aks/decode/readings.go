package decode

import (
	"encoding/base64"
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// trimmed is for values that end up where blanks around them do not count.
func trimmed(s string) (string, string) {
	t := strings.TrimSpace(s)
	if t == s {
		return s, ""
	}
	return t, "blanks around it do not count"
}

// then reads what another reading left.
func then(first, second reading) reading {
	return func(s string) (string, string) {
		s, why := first(s)
		s, also := second(s)
		if why != "" && also != "" {
			return s, why + "; " + also
		}
		return s, why + also
	}
}

func without(prefix, why string) reading {
	return func(s string) (string, string) {
		if rest, ok := strings.CutPrefix(s, prefix); ok {
			return rest, why
		}
		return s, ""
	}
}

var (
	plainVersion = then(trimmed, without("v", "the v before it does not count"))
	plainHost    = then(trimmed, withoutBrackets)
	// plainRegistryServer is what hosts.toml is made of.
	plainRegistryServer = then(trimmed, then(without("https://", "it is reached by https anyway"), withoutSlashes))
)

// withoutBrackets: who puts the name behind https:// needs them around an IPv6 address, berth does not.
func withoutBrackets(s string) (string, string) {
	inner, closed := strings.CutSuffix(strings.TrimPrefix(s, "["), "]")
	if a, err := netip.ParseAddr(inner); closed && strings.HasPrefix(s, "[") && err == nil && a.Is6() {
		return inner, "the brackets are added where they are needed"
	}
	return s, ""
}

func withoutSlashes(s string) (string, string) {
	if t := strings.TrimRight(s, "/"); t != s {
		return t, "a slash at its end does not count"
	}
	return s, ""
}

// under reads a path as a program does whose relative paths begin at a directory.
func under(dir string) reading {
	return func(s string) (string, string) {
		switch {
		case s == "":
			return s, ""
		case !path.IsAbs(s):
			return path.Join(dir, s), "a relative path begins at " + dir
		case path.Clean(s) == s:
			return s, ""
		case strings.TrimRight(s, "/") == path.Clean(s):
			return path.Clean(s), "a slash at its end does not count"
		}
		return path.Clean(s), "the path is " + path.Clean(s)
	}
}

// versionOrAny: a version that can't be compared is not compared.
func versionOrAny(s string) (string, string) {
	t, why := trimmed(s)
	if programVersion(t) != "" {
		return "", "no version x.y.z: any will do"
	}
	return t, why
}

// decodeBase64 reads base64 in which blanks and line breaks do not count.
func decodeBase64(s string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(s), ""))
}

func base64OrPlain(s string) (string, string) {
	if _, err := decodeBase64(s); err == nil {
		return s, ""
	}
	return base64.StdEncoding.EncodeToString([]byte(s)), "no base64: it is taken as it is"
}

func base64OrNothing(s string) (string, string) {
	if _, err := decodeBase64(s); err == nil {
		return s, ""
	}
	return "", "no base64: it counts as not set"
}

// anyOtherIs reads names as somebody does who compares them exactly, and takes every other for one of them.
func anyOtherIs(otherwise string, known ...string) reading {
	return func(s string) (string, string) {
		if slices.Contains(known, s) {
			return s, ""
		}
		return otherwise, "it is not exactly one of " + strings.Join(known, ", ") + ": it counts as " + otherwise
	}
}

func defaultFor(usual int64) func(int64) (int64, string) {
	return func(n int64) (int64, string) {
		if n > 0 {
			return n, ""
		}
		return usual, "it counts as the default, " + strconv.FormatInt(usual, 10)
	}
}

func refreshSeconds(n int64) (int64, string) {
	const least = 5
	return max(n, least), map[bool]string{true: "it counts as 5, which is the least"}[n < least]
}

// timeoutSeconds: see Timeout.
func timeoutSeconds(n int64) (int64, string) {
	counts := int64(Timeout(n).Seconds())
	if counts == n {
		return n, ""
	}
	return counts, "it is not within 1 to 21600: it counts as the default, 900"
}

// wholePages: the kernel rounds the slots of a hash table, of 8 bytes each, up to whole pages, and says then what it
// made of them (nf_ct_alloc_hashtable).
func wholePages(n int64) (int64, string) {
	slots := int64(os.Getpagesize() / 8)
	rest := n % slots
	if n <= 0 || rest == 0 {
		return n, ""
	}
	n += slots - rest
	return n, "the kernel rounds it up to whole pages: it counts as " + strconv.FormatInt(n, 10)
}

// flagName is the name of a flag as kubelet reads it.
func flagName(s string) (string, string) {
	name := strings.ReplaceAll(s, "_", "-")
	if s == "-v" {
		name = "--v"
	}
	if name == s {
		return s, ""
	}
	return name, "kubelet reads it as " + name
}
