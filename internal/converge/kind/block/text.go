package block

import (
	"maps"
	"slices"
	"strings"
)

func begin(name string) string { return "# BEGIN berth " + name + "\n" }
func end(name string) string   { return "# END berth " + name + "\n" }

// withLines is a text with lines between the marks of a name, where they are or at
// the end; without lines the marks go, too. Of marks whose other half somebody took
// away, what is left goes.
func withLines(text, name, lines string) string {
	block := ""
	if lines != "" {
		block = begin(name) + lines + end(name)
	}
	head, rest, found := cutLine(text, begin(name))
	if found {
		if _, tail, whole := cutLine(rest, end(name)); whole {
			return head + block + tail
		}
		text = head + rest
	}
	if head, tail, stray := cutLine(text, end(name)); stray {
		text = head + tail
	}
	if block == "" {
		return text
	}
	return ended(text) + block
}

// Without is a text without the block of a name.
func Without(text, name string) string { return withLines(text, name, "") }

// Lines is what a text has between the marks of a name; "" for no whole block.
func Lines(text, name string) string {
	_, rest, found := cutLine(text, begin(name))
	lines, _, whole := cutLine(rest, end(name))
	if !found || !whole {
		return ""
	}
	return lines
}

// First is a text whose first lines are the block of a name, wherever that stood.
func First(text, name, lines string) string { return withFirst(text, name, lines) }

// withFirst is withLines with the block before everything else.
func withFirst(text, name, lines string) string {
	return begin(name) + lines + end(name) + withLines(text, name, "")
}

// cutLine cuts a text around a line, which ends with a line feed.
func cutLine(text, line string) (before, after string, found bool) {
	for at := 0; at < len(text); {
		next := strings.IndexByte(text[at:], '\n') + 1
		if next == 0 {
			next = len(text) - at
		}
		if text[at:at+next] == line {
			return text[:at], text[at+next:], true
		}
		at += next
	}
	return text, "", false
}

// ended is a text that ends with a line feed, or an empty one.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// keyOf is the key that a line assigns; "" for none.
func keyOf(line string) string {
	key, _, ok := strings.Cut(strings.TrimSpace(line), "=")
	if !ok || strings.HasPrefix(key, "#") {
		return ""
	}
	return strings.TrimSpace(key)
}

// withKeys is a text with each key assigned once: where the first line assigned it,
// or at the end.
func withKeys(text string, keys map[string]string) string {
	var out strings.Builder
	done := map[string]bool{}
	for line := range strings.Lines(text) {
		key := keyOf(line)
		value, ours := keys[key]
		switch {
		case !ours:
			out.WriteString(ended(line))
		case !done[key]:
			out.WriteString(key + "=" + value + "\n")
		}
		done[key] = done[key] || ours
	}
	for _, key := range sortedKeys(keys) {
		if !done[key] {
			out.WriteString(key + "=" + keys[key] + "\n")
		}
	}
	if out.String() == ended(text) {
		return text
	}
	return out.String()
}

// linesOf are the lines that assign keys, in order.
func linesOf(text string, keys map[string]string) map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(text) {
		if _, ours := keys[keyOf(line)]; ours {
			out[keyOf(line)] = append(out[keyOf(line)], ended(line))
		}
	}
	return out
}

// withoutKeys takes the keys' lines away and puts those of before in their place.
func withoutKeys(text string, keys []string, before map[string][]string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		key := keyOf(line)
		if !slices.Contains(keys, key) {
			out.WriteString(ended(line))
			continue
		}
		out.WriteString(strings.Join(before[key], ""))
		before = maps.Clone(before)
		delete(before, key)
	}
	return out.String()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
