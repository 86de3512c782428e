package machine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"
	"unsafe"
	"weak"

	"github.com/godbus/dbus/v5"

	"github.com/berth-dev/berth/internal/host"
)

// TestNewsHoldNoMessages: all short strings of a message share one buffer, also the
// types of its variants. What is known of a unit keeps none of them.
func TestNewsHoldNoMessages(t *testing.T) {
	const units = 50
	told := 0
	w := &unitWatch{
		renamed: make(chan struct{}, 1), m: &manager{}, post: func(host.Event) { told++ },
		paths: map[dbus.ObjectPath][]string{}, seen: map[dbus.ObjectPath]string{},
	}
	n := &w.m.news
	n.add(w)
	var buffers []weak.Pointer[byte]
	for i := range units {
		unit := fmt.Sprintf("unit-%d.service", i)
		n.attend(unit)
		w.watch(unit, props{"Id": dbus.MakeVariant(unit), "ActiveState": dbus.MakeVariant("inactive")})
		for _, active := range []string{"activating", "active"} {
			buffers = append(buffers, hearMessage(t, n, unit, active)...)
		}
	}
	runtime.GC()
	held := 0
	for _, b := range buffers {
		if b.Value() != nil {
			held++
		}
	}
	if held > 0 {
		t.Errorf("%d of %d buffers of messages are held", held, len(buffers))
	}
	if told != 2*units || len(n.tested) != units {
		t.Errorf("told %d times, %d units tested", told, len(n.tested))
	}
	runtime.KeepAlive(w)
}

// TestNewsOfOthers: systemd tells of each unit of the machine, also of the scope and
// the slice of each pod. What nobody asks for is not kept.
func TestNewsOfOthers(t *testing.T) {
	var n news
	for i := range 100 {
		hearMessage(t, &n, fmt.Sprintf("cri-containerd-%d.scope", i), "active")
	}
	if len(n.tested) != 0 {
		t.Errorf("%d units that nobody asks for are kept", len(n.tested))
	}
	n.recall(props{"Id": dbus.MakeVariant("real.service")}) // asked for as an alias
	hearMessage(t, &n, "real.service", "active")
	p := props{"Id": dbus.MakeVariant("real.service")}
	if n.recall(p); !get[bool](p, conditionProp) {
		t.Errorf("recalled %v", p)
	}
}

// TestNewsOfBeginnings: who waits for a program to run is told once, of this unit, and no longer
// than the job lasts.
func TestNewsOfBeginnings(t *testing.T) {
	var n news
	told := 0
	over := n.tellBegun("a.service", func() { told++ })
	path := objectOf("a.service")
	for _, sub := range []string{"dead", "condition", "start-pre", "auto-restart", "stop-sigterm", "failed"} {
		n.begin(path, props{"SubState": dbus.MakeVariant(sub)})
	}
	n.begin(path, props{"ActiveState": dbus.MakeVariant("activating")})
	n.begin(objectOf("b.service"), props{"SubState": dbus.MakeVariant("start")})
	if told != 0 {
		t.Errorf("told %d times before the program ran", told)
	}
	n.begin(path, props{"SubState": dbus.MakeVariant("start")})
	n.begin(path, props{"SubState": dbus.MakeVariant("running")})
	if told != 1 {
		t.Errorf("told %d times that it runs", told)
	}
	over()
	n.tellBegun("a.service", func() { told++ })()
	n.begin(path, props{"SubState": dbus.MakeVariant("running")})
	if told != 1 {
		t.Error("told after the job")
	}
}

// hearMessage lets a signal be heard as it comes from the wire, and returns pointers
// into the buffers of its strings.
//
//go:noinline
func hearMessage(t *testing.T, n *news, unit, active string) []weak.Pointer[byte] {
	t.Helper()
	m := &dbus.Message{
		Type: dbus.TypeSignal,
		Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldPath:      dbus.MakeVariant(objectOf(unit)),
			dbus.FieldInterface: dbus.MakeVariant(properties),
			dbus.FieldMember:    dbus.MakeVariant("PropertiesChanged"),
			dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf("", map[string]dbus.Variant{}, []string{})),
		},
		Body: []any{unitIface, map[string]dbus.Variant{
			"ActiveState": dbus.MakeVariant(active), "SubState": dbus.MakeVariant("running"),
			"ConditionTimestamp": dbus.MakeVariant(uint64(7)), "ConditionResult": dbus.MakeVariant(true), "AssertResult": dbus.MakeVariant(true),
		}, []string{}},
	}
	var wire bytes.Buffer
	if err := m.EncodeTo(&wire, binary.LittleEndian); err != nil {
		t.Fatal(err)
	}
	m, err := dbus.DecodeMessage(&wire)
	if err != nil {
		t.Fatal(err)
	}
	s := &dbus.Signal{Path: m.Headers[dbus.FieldPath].Value().(dbus.ObjectPath), Name: properties + ".PropertiesChanged", Body: m.Body}
	n.hear(s)
	body := s.Body[1].(map[string]dbus.Variant)
	return []weak.Pointer[byte]{
		weak.Make(unsafe.StringData(string(s.Path))),
		weak.Make(unsafe.StringData(body["ConditionTimestamp"].Signature().String())),
	}
}
