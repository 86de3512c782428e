package provision

import (
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/adminuser"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

const (
	lastingRoot = "root:*:19000:0:99999:7:::\n"
	aging       = "azureuser:$6$x:19000:1:90:7:30:20500:\n"
	lasting     = "azureuser:$6$x:19000:0:99999:7:::\n"
)

// withUsers is a machine with these lines of users, and a chage that changes them.
func withUsers(shadow string) (h *memory.Host, ran *int) {
	h, ran = memory.New(), new(int)
	h.Put(adminuser.Shadow, shadow, 0o640)
	h.Program("/usr/bin/chage", func(c host.Command) host.Output {
		*ran++
		text, _ := h.ReadFile(adminuser.Shadow)
		lines := strings.SplitAfter(string(text), "\n")
		for i, line := range lines {
			f := strings.Split(line, ":")
			if f[0] != c.Args[8] {
				continue
			}
			for n, at := range []int{3, 4, 6, 7} {
				if f[at] = c.Args[2*n+1]; f[at] == "-1" {
					f[at] = ""
				}
			}
			lines[i] = strings.Join(f, ":")
		}
		h.Put(adminuser.Shadow, strings.Join(lines, ""), 0o640)
		return host.Output{}
	})
	return h, ran
}

func shadowOf(t *testing.T, h host.FS) string {
	t.Helper()
	text, err := h.ReadFile(adminuser.Shadow)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPasswordsLast: a password that would expire lasts, one that lasts is not touched, and
// what was there before comes back, whatever came between.
func TestPasswordsLast(t *testing.T) {
	users := []string{"azureuser", "root"}
	for name, c := range map[string]struct {
		before, during string
		ran            int
		// between happens while they last.
		between func(t *testing.T, h *memory.Host)
		after   string
		left    []string
	}{
		"one expires": {before: lastingRoot + aging, during: lastingRoot + lasting, ran: 2, after: lastingRoot + aging},
		"none does":   {before: lastingRoot + lasting, during: lastingRoot + lasting, after: lastingRoot + lasting},
		"nobody":      {before: lastingRoot, during: lastingRoot, after: lastingRoot},
		"twice": {before: aging, during: lasting, ran: 2, after: aging, between: func(t *testing.T, h *memory.Host) {
			t.Helper()
			if err := LetPasswordsLast(t.Context(), h, users); err != nil {
				t.Error(err)
			}
		}},
		"somebody else's change stays": {before: aging, during: lasting, ran: 1, left: []string{"azureuser"},
			between: func(_ *testing.T, h *memory.Host) {
				h.Put(adminuser.Shadow, strings.Replace(lasting, "99999", "60", 1), 0o640)
			}, after: strings.Replace(lasting, "99999", "60", 1)},
		"the user goes": {before: aging, during: lasting, ran: 1, between: func(_ *testing.T, h *memory.Host) { h.Put(adminuser.Shadow, "", 0o640) }},
		"a note that says nothing": {before: aging, during: lasting, ran: 1, after: lasting,
			between: func(_ *testing.T, h *memory.Host) { h.Put(adminuser.Record, "{", 0o600) }},
	} {
		t.Run(name, func(t *testing.T) {
			h, ran := withUsers(c.before)
			if err := LetPasswordsLast(t.Context(), h, users); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.during, shadowOf(t, h)); diff != "" {
				t.Error(diff)
			}
			if got, want := slices.Contains(expiring(h), "azureuser"), c.before != c.during; got != want {
				t.Errorf("the next run finds one who would expire: %v", got)
			}
			if c.between != nil {
				c.between(t, h)
			}
			left, err := GivePasswordAgesBack(t.Context(), h)
			if diff := cmp.Diff(c.left, left); diff != "" || err != nil {
				t.Errorf("%v, %s", err, diff)
			}
			if diff := cmp.Diff(c.after, shadowOf(t, h)); diff != "" || *ran != c.ran {
				t.Errorf("chage ran %d times: %s", *ran, diff)
			}
			if text, err := h.ReadFile(adminuser.Record); c.ran > 0 && name != "a note that says nothing" && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("still noted: %s, %v", text, err)
			}
		})
	}
}

// TestPasswordsLastIsNotedFirst: a run that is cut off at any step can be undone.
func TestPasswordsLastIsNotedFirst(t *testing.T) {
	h, _ := withUsers(aging)
	h.Program("/usr/bin/chage", func(c host.Command) host.Output {
		if text, err := h.ReadFile(adminuser.Record); err != nil || !strings.Contains(string(text), `"max":`+strconv.Itoa(90)) {
			t.Errorf("not noted before %v: %s, %v", c.Args, text, err)
		}
		return host.Output{ExitCode: 1}
	})
	if err := LetPasswordsLast(t.Context(), h, []string{"azureuser"}); err == nil {
		t.Error("what fails is not told")
	}
	if left, err := GivePasswordAgesBack(t.Context(), h); err != nil || left != nil || shadowOf(t, h) != aging {
		t.Errorf("%v, %v", left, err)
	}
	if got := expiring(h); !cmp.Equal(got, []string{"azureuser"}) {
		t.Error(got)
	}
}

// TestAdminUnitIsStopped: what gives the ages back runs when nobody asks for the unit any more.
func TestAdminUnitIsStopped(t *testing.T) {
	h, _ := withUsers(aging)
	h.Program("/usr/bin/berth", func(host.Command) host.Output { return host.Output{} })
	e := converge.New(converge.Options{Host: h})
	for _, rs := range [][]desired.Resource{adminuser.Resources("/usr/bin/berth", "azureuser"), nil} {
		h.ForgetJobs()
		st := &desired.State{Owner: desired.OwnerAKS}
		st.Add(rs...)
		if err := st.Seal(); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Apply(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	var jobs []string
	for _, j := range h.Jobs() {
		jobs = append(jobs, j.String())
	}
	if !slices.Contains(jobs, "stop "+adminuser.Unit) {
		t.Errorf("jobs %q", jobs)
	}
}
