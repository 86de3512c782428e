package searchdomain

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// entryOf is an entry for host/node@realm as MIT Kerberos writes it; deleted ones keep
// their room.
func entryOf(order binary.AppendByteOrder, realm string, deleted bool) []byte {
	var e []byte
	for i, text := range []string{realm, "host", "node"} {
		if i == 0 {
			e = order.AppendUint16(e, 2)
		}
		e = append(order.AppendUint16(e, uint16(len(text))), text...)
	}
	e = append(e, make([]byte, 4+4+1+2+2+16)...) // type, time, version, key
	size := int32(len(e))
	if deleted {
		size = -size
	}
	return append(order.AppendUint32(nil, uint32(size)), e...)
}

func keytabOf(entries ...[]byte) []byte {
	return append([]byte{5, 2}, bytes.Join(entries, nil)...)
}

func TestRealms(t *testing.T) {
	corp, other := entryOf(binary.BigEndian, "CORP.TEST", false), entryOf(binary.BigEndian, "OTHER.TEST", false)
	for name, c := range map[string]struct {
		keytab []byte
		want   []string
	}{
		"two":            {keytabOf(other, corp, corp), []string{"CORP.TEST", "OTHER.TEST"}},
		"deleted":        {keytabOf(entryOf(binary.BigEndian, "OTHER.TEST", true), corp), []string{"CORP.TEST"}},
		"old version":    {append([]byte{5, 1}, entryOf(binary.LittleEndian, "CORP.TEST", false)...), []string{"CORP.TEST"}},
		"empty":          {nil, nil},
		"no keytab":      {[]byte("CORP.TEST"), nil},
		"newer version":  {append([]byte{5, 3}, corp...), nil},
		"ends too early": {keytabOf(corp, other[:len(other)-1]), []string{"CORP.TEST"}},
		"no end":         {keytabOf(corp, make([]byte, 8)), []string{"CORP.TEST"}},
		"realm too long": {keytabOf([]byte{0, 0, 0, 4, 0, 1, 255, 255}), nil},
	} {
		if diff := cmp.Diff(c.want, Realms(c.keytab)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func FuzzRealms(f *testing.F) {
	f.Add(keytabOf(entryOf(binary.BigEndian, "CORP.TEST", false), entryOf(binary.BigEndian, "X", true)))
	f.Add(append([]byte{5, 1}, entryOf(binary.LittleEndian, "CORP.TEST", false)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		got := Realms(b)
		if !slices.IsSorted(got) || slices.Contains(got, "") {
			t.Errorf("%q", got)
		}
		for _, realm := range got {
			if !bytes.Contains(b, []byte(realm)) {
				t.Errorf("%q is not in the file", realm)
			}
		}
	})
}
