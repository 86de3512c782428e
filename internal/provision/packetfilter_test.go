package provision

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/internal/component/packetfilter"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/kind/nftables"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// filtered is a machine with the rules written down, and the table that they mean.
func filtered(t *testing.T) (*memory.Host, host.FilterTable) {
	t.Helper()
	rs, err := packetfilter.Resources(packetfilter.Settings{RestrictMetadata: true})
	if err != nil {
		t.Fatal(err)
	}
	h := memory.New()
	h.Put(packetfilter.RulesFile, string(rs[0].(*desired.File).Content.Data()), 0o644)
	return h, nftables.Table(rs[1].(*desired.PacketFilter))
}

// The table is set where it is not there or another, and not touched where it is.
func TestRestorePacketFilter(t *testing.T) {
	h, want := filtered(t)
	rec := effect.Record(h)
	for name, c := range map[string]struct {
		arrange func()
		writes  bool
	}{
		"after a boot": {func() {}, true},
		"again":        {func() { h.PutTable(want) }, false},
		"changed":      {func() { h.PutTable(host.FilterTable{Name: want.Name, Other: []string{"chain x"}}) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			h.FlushTables()
			rec.Forget()
			c.arrange()
			if err := RestorePacketFilter(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			have, err := h.FilterTable(t.Context(), want.Name)
			if err != nil || !have.Equal(&want) || slices.Contains(rec.Lines(), "replace-table berth") != c.writes {
				t.Errorf("%+v, %v, %v", have, rec.Lines(), err)
			}
		})
	}
}

// What can't be put in force is an error: kubelet does not start then.
func TestRestorePacketFilterFails(t *testing.T) {
	absent := memory.New()
	spoiled, _ := filtered(t)
	spoiled.Put(packetfilter.RulesFile, "{}", 0o644)
	without, _ := filtered(t)
	without.NoPacketFilter(syscall.EPROTONOSUPPORT)
	full, _ := filtered(t)
	for name, c := range map[string]struct {
		h    host.Host
		is   error
		says string
	}{
		"no file":         {absent, fs.ErrNotExist, packetfilter.RulesFile},
		"spoiled":         {spoiled, nil, packetfilter.RulesFile},
		"no nf_tables":    {without, syscall.EPROTONOSUPPORT, "inet berth"},
		"kernel's memory": {effect.Inject(full, effect.Plan{{At: 1, Kind: effect.Fail, Err: syscall.ENOMEM}}), syscall.ENOMEM, "berth"},
	} {
		t.Run(name, func(t *testing.T) {
			err := RestorePacketFilter(t.Context(), c.h)
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v", err)
			}
			e, written := errors.AsType[*exitcode.Error](err)
			if damaged := name == "no file" || name == "spoiled"; written != damaged || damaged && !strings.Contains(e.Hint(), "apply") {
				t.Errorf("%v: remedy %+v", err, e)
			}
		})
	}
}

// A kernel without nf_tables, or without a part of it, ends the run with the code
// of the rule that it can't put in force, whichever way it says so and whenever:
// missing are a subsystem, a family or an expression.
func TestKernelWithoutPacketFilter(t *testing.T) {
	for _, c := range []struct {
		settings packetfilter.Settings
		code     int
	}{
		{packetfilter.Settings{}, exitcode.PacketFilter},
		{packetfilter.Settings{RestrictMetadata: true}, exitcode.MetadataInFilter},
		{packetfilter.Settings{RestrictMetadata: true, InMangle: true}, exitcode.MetadataInMangle},
	} {
		rs, err := packetfilter.Resources(c.settings)
		if err != nil {
			t.Fatal(err)
		}
		st := &desired.State{Owner: desired.OwnerAKS}
		st.Add(rs...)
		if err := st.Seal(); err != nil {
			t.Fatal(err)
		}
		apply := func(h host.Host) error {
			_, err := converge.New(converge.Options{Host: h}).Apply(t.Context(), st)
			return err
		}
		rec := effect.Record(memory.New())
		if err := apply(rec); err != nil {
			t.Fatal(err)
		}
		set := slices.Index(rec.Lines(), "replace-table berth") + 1
		for _, errno := range []syscall.Errno{syscall.ENOENT, syscall.EOPNOTSUPP, syscall.EPROTONOSUPPORT, syscall.EAFNOSUPPORT, syscall.EINVAL} {
			unread := memory.New()
			unread.NoPacketFilter(errno)
			for when, h := range map[string]host.Host{"read": unread, "set": effect.Inject(memory.New(), effect.Plan{{At: set, Kind: effect.Fail, Err: errno}})} {
				err := apply(h)
				f := Explain(err)
				if !errors.Is(err, errno) || f.Code.Number != c.code || f.Hint == "" || !strings.Contains(f.Cause, "inet berth") {
					t.Errorf("%s: %v: code %d (%s), want %d", when, errno, f.Code.Number, f.Cause, c.code)
				}
			}
		}
	}
}

// A program that is installed under several names is called by one of them,
// whichever it was started by; a build of its own is called by its own.
func TestOwnProgram(t *testing.T) {
	h := memory.New()
	h.Put("/usr/local/bin/berth", "another build", 0o755)
	if got := (FactsSource{Program: "/tmp/berth"}).ownProgram(h); got != "/tmp/berth" {
		t.Errorf("another build is installed: %s", got)
	}
	for _, nowhere := range []FactsSource{{}, {Program: "/tmp/berth", Offline: true}} {
		if got := nowhere.ownProgram(h); got != "" {
			t.Errorf("%+v: nobody knows where it is: %s", nowhere, got)
		}
	}
	real := thisProgram(t)
	h.Put("/usr/local/bin/berth", real, 0o755)
	h.Put("/usr/lib/berth/berth", real, 0o755)
	for _, running := range []string{"/usr/local/bin/berth", "/usr/lib/berth/berth"} {
		if got := (FactsSource{Program: running}).ownProgram(h); got != "/usr/local/bin/berth" {
			t.Errorf("started as %s: %s", running, got)
		}
	}
	h.PutLink("/usr/lib/berth/berth", packetfilter.Program, 0)
	if got := (FactsSource{Program: "/usr/local/bin/berth", Offline: true}).ownProgram(h); got != packetfilter.Program {
		t.Errorf("with the published name: %s", got)
	}
}

// thisProgram is the content of the test program: one with build information.
func thisProgram(t *testing.T) string {
	t.Helper()
	p, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// iptables is asked to accept what is forwarded where somebody made the chain that could drop
// it, and where nobody can say.
func TestAcceptForwarded(t *testing.T) {
	const program = "/usr/sbin/iptables"
	for name, c := range map[string]struct {
		names  []host.FilterName
		legacy string
		fails  error
		runs   bool
	}{
		"fresh machine":  {nil, "", nil, false},
		"chain":          {[]host.FilterName{{Family: "ip", Table: "filter", Chain: "FORWARD"}}, "", nil, true},
		"legacy tables":  {nil, "filter\n", nil, true},
		"others":         {[]host.FilterName{{Family: "ip", Table: "filter", Chain: "INPUT"}, {Family: "ip6", Table: "filter", Chain: "FORWARD"}, {Family: "ip", Table: "mangle", Chain: "FORWARD"}}, "", nil, false},
		"nobody can say": {nil, "", syscall.EPROTONOSUPPORT, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			var ran []string
			h.Program(program, func(c host.Command) host.Output {
				ran = append(ran, strings.Join(c.Args, " "))
				return host.Output{}
			})
			h.Put("/proc/net/ip_tables_names", c.legacy, 0o444)
			h.PutFilterNames(c.names...)
			h.NoPacketFilter(c.fails)
			if err := AcceptForwarded(t.Context(), h, program); err != nil {
				t.Fatal(err)
			}
			if want := []string{"-w 5 -P FORWARD ACCEPT"}; c.runs != slices.Equal(ran, want) || !c.runs && ran != nil {
				t.Errorf("ran %v", ran)
			}
		})
	}
}
