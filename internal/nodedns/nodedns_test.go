package nodedns

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/component/localdns"
	"github.com/berth-dev/berth/internal/component/resolver"
	"github.com/berth-dev/berth/internal/host/memory"
)

const corefile = ". {\n    forward . 168.63.129.16 {\n    }\n    ready 169.254.10.10:8181\n}\n"

// links are the interfaces of a machine, by name.
type links map[string][]netip.Addr

func (l links) Put(name string, a []netip.Addr) error { l[name] = a; return nil }

func (l links) Remove(name string, _ []netip.Addr) error { delete(l, name); return nil }

// answers is a name server that is ready after some questions.
type answers struct{ refused, asked int }

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	a.asked++
	switch {
	case r.URL.String() != "http://169.254.10.10:8181/ready":
		return nil, errors.New("nobody is at " + r.URL.String())
	case a.asked == 1 && a.refused > 0:
		return nil, errors.New("connection refused")
	case a.asked <= a.refused:
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody}, nil
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func server(h *memory.Host, refused int) (Server, links, *answers) {
	l, a := links{}, &answers{refused: refused}
	h.Put(localdns.Corefile, corefile, 0o644)
	h.PutDir(localdns.RunDir)
	return Server{Host: h, Links: l, Client: &http.Client{Transport: a}}, l, a
}

func text(t *testing.T, h *memory.Host, path string) string {
	t.Helper()
	b, err := h.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A machine without systemd-resolved has the server in its list while it answers.
func TestPlainList(t *testing.T) {
	const list = "# mine\nsearch corp.example\nnameserver 192.0.2.1\nnameserver 127.0.0.53\n"
	h := memory.New()
	h.Put(plainList, list, 0o640)
	s, l, a := server(h, 2)
	for range 2 { // a server that crashed starts again
		if err := errors.Join(s.Prepare(t.Context()), s.Announce(t.Context())); err != nil {
			t.Fatal(err)
		}
		if got := text(t, h, localdns.Running); !strings.Contains(got, "forward . 192.0.2.1 {") {
			t.Errorf("the server forwards: %s", got)
		}
		if got := text(t, h, plainList); got != "nameserver 169.254.10.10\n"+list {
			t.Errorf("the machine asks: %s", got)
		}
	}
	if info, err := h.Lstat(plainList); err != nil || info.Mode.Perm() != 0o640 || len(l[localdns.Link]) != 2 || a.asked != 4 {
		t.Errorf("%v, %v, %v, asked %d times", info.Mode, err, l, a.asked)
	}
	for range 2 {
		if err := s.Withdraw(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := text(t, h, plainList); got != list || len(l) != 0 {
		t.Errorf("afterwards: %v\n%s", l, got)
	}
}

// With systemd-resolved it is told; the list that others made is theirs.
func TestResolved(t *testing.T) {
	h := memory.New()
	h.PutLink(resolver.List, plainList, 0)
	h.PutDir("/run/systemd/resolve")
	h.Put(resolver.List, "nameserver 169.254.10.10\nnameserver 192.0.2.2\nnameserver fe80::1%eth0\n", 0o644)
	h.Put("/usr/lib/systemd/system/"+resolvedUnit, "[Service]\nExecStart=/bin/resolved\n", 0o644)
	h.Put("/bin/resolved", "", 0o755)
	if err := h.StartUnit(t.Context(), resolvedUnit); err != nil {
		t.Fatal(err)
	}
	s, _, _ := server(h, 0)
	if err := errors.Join(s.Prepare(t.Context()), s.Announce(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := text(t, h, localdns.Running); !strings.Contains(got, "forward . 192.0.2.2 {") {
		t.Errorf("the server forwards: %s", got)
	}
	if got := text(t, h, resolvedDropIn); !strings.Contains(got, "[Resolve]\nDNS=169.254.10.10\n") {
		t.Errorf("drop-in: %s", got)
	}
	h.ForgetJobs()
	if err := s.Withdraw(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Lstat(resolvedDropIn); err == nil || len(h.Jobs()) == 0 {
		t.Errorf("drop-in: %v; jobs %v", err, h.Jobs())
	}
}

// A server that crashes again and again does not cost the machine its resolver: systemd
// starts no unit six times in ten seconds.
func TestResolvedOutlivesCrashes(t *testing.T) {
	h := memory.New()
	h.PutDir("/run/systemd/resolve")
	h.Put(resolver.List, "nameserver 192.0.2.2\n", 0o644)
	h.Put("/usr/lib/systemd/system/"+resolvedUnit, "[Service]\nExecStart=/bin/resolved\n", 0o644)
	h.Put("/bin/resolved", "", 0o755)
	s, _, _ := server(h, 0)
	for i := range 5 {
		if err := errors.Join(s.Prepare(t.Context()), s.Announce(t.Context()), s.Withdraw(t.Context())); err != nil {
			t.Fatalf("time %d: %v", i+1, err)
		}
	}
	if u := h.Units()[resolvedUnit]; u.ActiveState != "active" {
		t.Errorf("%+v", u)
	}
}

// Nobody waits for a server whose process has ended.
func TestEndedBeforeReady(t *testing.T) {
	h := memory.New()
	h.Put(plainList, "nameserver 192.0.2.1\n", 0o644)
	s, _, a := server(h, 1<<30)
	if err := s.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.PutDir("/proc/4711")
	s.Process = "4711"
	s.Client.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		if a.asked == 3 {
			if err := h.Remove("/proc/4711"); err != nil {
				t.Error(err)
			}
		}
		if a.asked > 9 {
			t.Fatal("it is asked on and on")
		}
		return a.RoundTrip(r)
	})
	if err := s.Announce(t.Context()); err == nil || !strings.Contains(err.Error(), "ended") || a.asked != 4 || strings.Contains(text(t, h, plainList), "169.254") {
		t.Errorf("asked %d times: %v", a.asked, err)
	}
}

func TestNobodyToForwardTo(t *testing.T) {
	for name, list := range map[string]string{"none": "search x\n", "itself": "nameserver 169.254.10.10\nnameserver 127.0.0.1\n", "damaged": "nameserver\nnameserver x\n"} {
		h := memory.New()
		h.Put(plainList, list, 0o644)
		s, l, _ := server(h, 0)
		if err := s.Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), plainList) || len(l) != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A server that never answers ends with what it said last, when the time is over.
func TestNeverReady(t *testing.T) {
	h := memory.New()
	h.Put(plainList, "nameserver 192.0.2.1\n", 0o644)
	s, _, a := server(h, 1<<30)
	if err := s.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.Client.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		if a.asked == 5 {
			cancel()
		}
		return a.RoundTrip(r)
	})
	if err := s.Announce(ctx); err == nil || strings.Contains(text(t, h, plainList), "169.254") {
		t.Errorf("%v; the machine asks %s", err, text(t, h, plainList))
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A name that nobody resolves keeps the addresses that it had.
func TestHosts(t *testing.T) {
	h := memory.New()
	s, _, _ := server(h, 0)
	h.Put(localdns.HostsFile, "192.0.2.7 kept.example\n192.0.2.8 changed.example\n192.0.2.9 forgotten.example\n", 0o644)
	look := func(_ context.Context, name string) ([]netip.Addr, error) {
		if name != "changed.example" {
			return []netip.Addr{netip.MustParseAddr("203.0.113.1")}, &net.DNSError{IsNotFound: true}
		}
		return []netip.Addr{netip.MustParseAddr("2001:db8::2"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.2")}, nil
	}
	failed, err := s.Hosts(t.Context(), []string{"changed.example", "kept.example", "never.example"}, look)
	want := "192.0.2.2 changed.example\n2001:db8::2 changed.example\n192.0.2.7 kept.example\n"
	if got := text(t, h, localdns.HostsFile); err != nil || !strings.HasSuffix(got, "\n"+want) || strings.Contains(got, "forgotten") || !slices.Equal(failed, []string{"never.example"}) {
		t.Errorf("%v, %v:\n%s", failed, err, got)
	}
	before, _ := h.Lstat(localdns.HostsFile)
	_, err = s.Hosts(t.Context(), []string{"changed.example", "kept.example", "never.example"}, look)
	if after, _ := h.Lstat(localdns.HostsFile); err != nil || after.Inode != before.Inode {
		t.Errorf("the same is written again: %v", err)
	}
}

// Where the server does not run there is nothing to write.
func TestHostsOfNobody(t *testing.T) {
	s, _, _ := server(memory.New(), 0)
	if failed, err := s.Hosts(t.Context(), []string{"a.example"}, nil); failed != nil || err != nil {
		t.Errorf("%v, %v", failed, err)
	}
}

// FuzzServers: what is forwarded to is never this machine, and each server once.
func FuzzServers(f *testing.F) {
	f.Add("nameserver 192.0.2.1\nnameserver 127.0.0.53 # x\nnameserver ::1\nnameserver fe80::1%e\n")
	f.Fuzz(func(t *testing.T, text string) {
		seen := map[netip.Addr]bool{}
		for _, a := range servers(text) {
			if a.IsLoopback() || a.Zone() != "" || seen[a] || slices.Contains(localdns.Addresses(), a) {
				t.Errorf("%q: %v", text, a)
			}
			seen[a] = true
		}
	})
}
