package dns

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"
)

func query(t testing.TB, name string, typ dnsmessage.Type) []byte {
	t.Helper()
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: 7, RecursionDesired: true})
	if err := b.StartQuestions(); err != nil {
		t.Fatal(err)
	}
	if err := b.Question(dnsmessage.Question{Name: dnsmessage.MustNewName(name), Type: typ, Class: dnsmessage.ClassINET}); err != nil {
		t.Fatal(err)
	}
	msg, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

func TestAnswer(t *testing.T) {
	hosts := parseHosts([]byte("10.99.0.1 api.lab.test # the bridge\nfd00::1 api.lab.test\nnonsense\n10.99.0.10 n1 N1.lab.test\n"))
	lookup := func(name string) ([]netip.Addr, bool) { a, ok := hosts[name]; return a, ok }
	for _, tt := range []struct {
		name  string
		typ   dnsmessage.Type
		code  dnsmessage.RCode
		count int
	}{
		{"api.lab.test.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, 1},
		{"API.Lab.Test.", dnsmessage.TypeAAAA, dnsmessage.RCodeSuccess, 1},
		{"n1.lab.test.", dnsmessage.TypeAAAA, dnsmessage.RCodeSuccess, 0},
		{"example.com.", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
	} {
		reply, err := answer(query(t, tt.name, tt.typ), lookup)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		var m dnsmessage.Message
		if err := m.Unpack(reply); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		got := []any{m.ID, m.Response, m.RCode, len(m.Answers)}
		if diff := cmp.Diff([]any{uint16(7), true, tt.code, tt.count}, got); diff != "" {
			t.Errorf("%s %v: (-want +got)\n%s", tt.name, tt.typ, diff)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(query(f, "api.lab.test.", dnsmessage.TypeA))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, msg []byte) {
		reply, err := answer(msg, func(string) ([]netip.Addr, bool) { return []netip.Addr{netip.IPv6Loopback()}, true })
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(reply); err != nil {
			t.Errorf("reply does not parse: %v", err)
		}
	})
}

func FuzzHosts(f *testing.F) {
	f.Add([]byte("1.2.3.4 a b # c\n::1 d\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, addrs := range parseHosts(b) {
			if len(addrs) == 0 || name == "" || name != normal(name) {
				t.Errorf("%q: %v", name, addrs)
			}
		}
	})
}
