package converge_test

import (
	"cmp"
	"path"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
)

const (
	syslogAlias = "/etc/systemd/system/syslog.service"
	syslogUnit  = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\nAlias=syslog.service\n"
)

// withSyslogs is a machine with two units that have one name in common.
func withSyslogs() *machine {
	h := newMachine()
	for _, n := range []string{"rsyslog", "syslog-ng"} {
		h.Put("/usr/lib/systemd/system/"+n+".service", syslogUnit, 0o644)
	}
	return h
}

func syslogs(enabled, disabled string) []desired.Resource {
	var out []desired.Resource
	if enabled != "" {
		out = append(out, &desired.Unit{Name: enabled + ".service", Enablement: desired.Enabled})
	}
	if disabled != "" {
		out = append(out, &desired.Unit{Name: disabled + ".service", Enablement: desired.Disabled})
	}
	return out
}

// aliasCase is what stands at the alias before a run, and what after it.
type aliasCase struct {
	arrange           func(*machine)
	enabled, disabled string
	// target is where the alias leads after it; "" where it is as it was.
	target string
	// gone: there is none after it. adopted: it was as it is wanted.
	gone, adopted bool
	remark        string
}

func alias(target string) func(*machine) {
	return func(h *machine) { h.PutLink(target, syslogAlias, 0) }
}

const (
	rsyslogPath  = "/usr/lib/systemd/system/rsyslog.service"
	syslogNGPath = "/usr/lib/systemd/system/syslog-ng.service"
)

var aliasCases = map[string]aliasCase{
	"disabled, its own":           {arrange: alias(rsyslogPath), disabled: "rsyslog", gone: true},
	"disabled, its own, relative": {arrange: alias("../../../lib/systemd/system/rsyslog.service"), disabled: "rsyslog", gone: true},
	"disabled, another's":         {arrange: alias(syslogNGPath), disabled: "rsyslog"},
	"disabled, a mask":            {arrange: alias("/dev/null"), disabled: "rsyslog"},
	"disabled, a definition":      {arrange: func(h *machine) { h.Put(syslogAlias, syslogUnit, 0o644) }, disabled: "rsyslog"},

	"enabled, none":            {arrange: func(*machine) {}, enabled: "rsyslog", target: rsyslogPath},
	"enabled, its own":         {arrange: alias("/lib/systemd/system/rsyslog.service"), enabled: "rsyslog", adopted: true},
	"enabled, one to nowhere":  {arrange: alias("/usr/lib/systemd/system/gone.service"), enabled: "rsyslog", target: rsyslogPath},
	"enabled, another's":       {arrange: alias(syslogNGPath), enabled: "rsyslog", remark: "a link to " + syslogNGPath},
	"enabled, a mask":          {arrange: alias("/dev/null"), enabled: "rsyslog", remark: "a link to /dev/null"},
	"enabled, a definition":    {arrange: func(h *machine) { h.Put(syslogAlias, syslogUnit, 0o644) }, enabled: "rsyslog", remark: "a file"},
	"one enabled for another":  {arrange: alias(syslogNGPath), enabled: "rsyslog", disabled: "syslog-ng", target: rsyslogPath},
	"one disabled for another": {arrange: alias(syslogNGPath), enabled: "syslog-ng", disabled: "rsyslog", adopted: true},
}

// An alias is whose it is: what stands there and leads to another unit, or is one, stays as with
// systemctl, and a remark says so.
func TestAlias(t *testing.T) {
	for name, c := range aliasCases {
		t.Run(name, func(t *testing.T) {
			h := withSyslogs()
			c.arrange(h)
			h.Flush()
			must(h.DaemonReload(tctx))
			before := others(h)
			st := sealed(t, syslogs(c.enabled, c.disabled)...)
			p := runs(t, h, st)
			c.check(t, h, before[syslogAlias])
			if told := strings.Join(p.Remarks, "\n"); !strings.Contains(told, c.remark) || (told == "") != (c.remark == "") {
				t.Errorf("remarks: %q, want %q", told, c.remark)
			}
			converged(t, h, st)
			if p := runs(t, h, sealed(t)); (len(p.Kept) > 0) != c.adopted {
				t.Errorf("kept: %q", p.Kept)
			}
			if diff := gocmp.Diff(before, others(h)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func (c aliasCase) check(t *testing.T, h *machine, was string) {
	t.Helper()
	switch is := others(h)[syslogAlias]; {
	case c.gone && is != "":
		t.Errorf("it is there: %s", is)
	case c.target != "" && !strings.HasSuffix(is, c.target):
		t.Errorf("it is %q", is)
	case !c.gone && c.target == "" && is != was:
		t.Errorf("it was %q and is %q", was, is)
	}
}

// What berth put at an alias for one unit makes way for another that is wanted instead; what
// somebody else put there since stays, whatever the ledger says.
func TestAliasOfAnEarlierContract(t *testing.T) {
	for name, there := range map[string]string{"as berth made it": "", "somebody else's": "/usr/lib/systemd/system/containerd.service"} {
		t.Run(name, func(t *testing.T) {
			h := withSyslogs()
			h.Flush()
			runs(t, h, sealed(t, syslogs("syslog-ng", "")...))
			want := rsyslogPath
			if there != "" {
				must(h.Remove(syslogAlias))
				h.PutLink(there, syslogAlias, 0)
				want = there
			}
			st := sealed(t, syslogs("rsyslog", "")...)
			runs(t, h, st)
			if got, err := h.Readlink(syslogAlias); got != want {
				t.Errorf("it leads to %s, %v", got, err)
			}
			converged(t, h, st)
		})
	}
}

// A file of the contract at an alias is no link of a unit's, also before it is there.
func TestFileAtAnAlias(t *testing.T) {
	h := withSyslogs()
	h.Flush()
	st := sealed(t, append(syslogs("rsyslog", ""), managed(syslogAlias, syslogUnit))...)
	p := runs(t, h, st)
	if text, err := h.ReadFile(syslogAlias); string(text) != syslogUnit || len(p.Remarks) != 1 {
		t.Errorf("%q, %v, remarks %q", text, err, p.Remarks)
	}
	converged(t, h, st)
	st = sealed(t, syslogs("rsyslog", "")...)
	runs(t, h, st)
	if got, err := h.Readlink(syslogAlias); got != rsyslogPath {
		t.Errorf("it leads to %s, %v", got, err)
	}
	converged(t, h, st)
}

// An instance has the aliases of its template, and leaves those of others.
func TestAliasOfAnInstance(t *testing.T) {
	const at = "/etc/systemd/system/v@a.service"
	for name, there := range map[string]string{"none": "", "another's": "/usr/lib/systemd/system/containerd.service"} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			h.Put("/usr/lib/systemd/system/w@.service", "[Service]\nExecStart=/bin/true\n[Install]\nAlias=v@%i.service\n", 0o644)
			if there != "" {
				h.PutLink(there, at, 0)
			}
			h.Flush()
			for _, c := range []struct {
				e    desired.Enablement
				want string
			}{{desired.Enabled, "/usr/lib/systemd/system/w@.service"}, {desired.Disabled, ""}} {
				if there != "" {
					c.want = there
				}
				st := sealed(t, &desired.Unit{Name: "w@a.service", Enablement: c.e})
				runs(t, h, st)
				if got, err := h.Readlink(at); got != c.want {
					t.Errorf("%s: it leads to %q, %v", c.e, got, err)
				}
				converged(t, h, st)
			}
		})
	}
}

// Two units that a document enables and that ask for one name: the one that has it keeps it, else
// the first has it, and the other is told.
func TestOneAliasOfTwoUnits(t *testing.T) {
	both := sealed(t, append(syslogs("rsyslog", ""), syslogs("syslog-ng", "")...)...)
	for _, has := range []string{"", "rsyslog", "syslog-ng"} {
		h := withSyslogs()
		h.Flush()
		must(h.DaemonReload(tctx))
		if has != "" {
			runs(t, h, sealed(t, syslogs(has, "")...))
		}
		p := runs(t, h, both)
		want := cmp.Or(has, "rsyslog") + ".service"
		if to, err := h.Readlink(syslogAlias); err != nil || path.Base(to) != want {
			t.Errorf("%q had it: it leads to %s, %v", has, to, err)
		}
		if len(p.Remarks) != 1 || !strings.Contains(p.Remarks[0], "the name of "+want) {
			t.Errorf("%q had it: remarks %q", has, p.Remarks)
		}
		if p, err := engine(h, &providers{}).Plan(t.Context(), both); err != nil || !p.Empty() {
			t.Errorf("%q had it: then %+v, %v", has, p.Actions, err)
		}
	}
}
