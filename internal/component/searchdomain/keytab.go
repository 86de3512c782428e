package searchdomain

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// The two versions of the file (MIT Kerberos, "Keytab file format"): the older one has
// numbers as the machine that wrote it, and counts the realm among the components.
const (
	keytabMark  = 5
	keytabOld   = 1
	keytabNew   = 2
	keytabIntro = 2 // bytes before the first entry
)

// Realms are those of the principals in a keytab, sorted: of each of them the machine is
// a member. What can't be read of a file says nothing.
func Realms(keytab []byte) []string {
	if len(keytab) < keytabIntro || keytab[0] != keytabMark {
		return nil
	}
	var order binary.ByteOrder = binary.BigEndian
	switch keytab[1] {
	case keytabOld:
		order = binary.LittleEndian
	case keytabNew:
	default:
		return nil
	}
	var out []string
	for rest := keytab[keytabIntro:]; ; {
		entry, after, ok := nextEntry(rest, order)
		if !ok {
			break
		}
		if realm := realmOf(entry, order); realm != "" {
			out = append(out, realm)
		}
		rest = after
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// nextEntry parts off an entry; that of a deleted one is empty, for it has a negative
// size.
func nextEntry(b []byte, order binary.ByteOrder) (entry, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	size := int64(int32(order.Uint32(b))) //nolint:gosec // the sign is what is looked for
	length := max(size, -size)
	if b = b[4:]; length == 0 || int64(len(b)) < length {
		return nil, nil, false
	}
	if size > 0 {
		entry = b[:length]
	}
	return entry, b[length:], true
}

// realmOf is behind the number of components, with its length.
func realmOf(entry []byte, order binary.ByteOrder) string {
	if len(entry) < 4 {
		return ""
	}
	length, text := int(order.Uint16(entry[2:])), entry[4:]
	if length > len(text) || bytes.ContainsFunc(text[:length], func(r rune) bool { return r < ' ' }) {
		return ""
	}
	return string(text[:length])
}
