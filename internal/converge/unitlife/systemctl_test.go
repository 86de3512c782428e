package unitlife_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/machine"
)

// tree are files by their paths; "-> TARGET" is a link.
type tree map[string]string

const (
	usrUnits = "/usr/lib/systemd/system/"
	etcUnits = "/etc/systemd/system/"
	runs     = "[Service]\nExecStart=/bin/true\n"
	wanted   = "[Install]\nWantedBy=multi-user.target\n"
	timers   = "[Install]\nWantedBy=timers.target\n"
)

// enableCases are roots with units, and which of them is enabled.
var enableCases = map[string]struct {
	unit string
	tree tree
}{
	"its own drop-in":         {"a-b.service", tree{usrUnits + "a-b.service": runs + wanted, etcUnits + "a-b.service.d/x.conf": timers}},
	"a drop-in of its type":   {"a-b.service", tree{usrUnits + "a-b.service": runs + wanted, etcUnits + "service.d/x.conf": timers}},
	"a drop-in of its prefix": {"a-b.service", tree{usrUnits + "a-b.service": runs + wanted, etcUnits + "a-.service.d/x.conf": timers}},
	"its own drop-in, which one of its prefix hides from what runs": {"a-b.service", tree{usrUnits + "a-b.service": runs + wanted,
		usrUnits + "a-b.service.d/x.conf": timers, etcUnits + "a-.service.d/x.conf": ""}},
	"drop-ins of an instance": {"a-b@i.service", tree{usrUnits + "a-b@.service": runs + wanted,
		etcUnits + "a-b@.service.d/x.conf": timers, etcUnits + "a-b@i.service.d/y.conf": "[Install]\nRequiredBy=%i.target\n",
		etcUnits + "a-@.service.d/z.conf": "[Install]\nWantedBy=z.target\n", etcUnits + "a-@i.service.d/w.conf": "[Install]\nWantedBy=w.target\n"}},
	"drop-ins of one name, of an instance and its template": {"a@i.service", tree{usrUnits + "a@.service": runs + wanted,
		etcUnits + "a@.service.d/x.conf": timers, usrUnits + "a@i.service.d/x.conf": "[Install]\nRequiredBy=i.target\n"}},
	"a drop-in that an empty one hides": {"a.service", tree{usrUnits + "a.service": runs + wanted, usrUnits + "a.service.d/x.conf": timers, etcUnits + "a.service.d/x.conf": ""}},
	"a drop-in that is a link":          {"a.service", tree{usrUnits + "a.service": runs + wanted, usrUnits + "x.txt": timers, etcUnits + "a.service.d/x.conf": "-> /usr/lib/systemd/system/x.txt"}},
	"a template": {"a@.service", tree{usrUnits + "a@.service": runs + wanted + "DefaultInstance=one\n",
		etcUnits + "a@.service.d/x.conf": "[Install]\nDefaultInstance=two\n", etcUnits + "a@two.service.d/x.conf": timers}},
	"Also= with drop-ins": {"a.service", tree{usrUnits + "a.service": runs + wanted + "Also=b-c.service\n", usrUnits + "b-c.service": runs + wanted,
		etcUnits + "b-c.service.d/x.conf": "[Install]\nWantedBy=\nWantedBy=timers.target\nAlso=d.service\n", etcUnits + "b-.service.d/y.conf": "[Install]\nAlias=y.service\n",
		usrUnits + "d.service": runs + wanted}},
	"Also= of a unit with drop-ins alone in them": {"a.service", tree{usrUnits + "a.service": runs + wanted + "Also=b.service\n", usrUnits + "b.service": runs,
		etcUnits + "b.service.d/x.conf": timers}},
	"Also= of a template": {"a.service", tree{usrUnits + "a.service": runs + wanted + "Also=b@.service\n", usrUnits + "b@.service": runs + wanted,
		etcUnits + "b@.service.d/x.conf": "[Install]\nDefaultInstance=one\n"}},
	"Also= of an instance": {"a.service", tree{usrUnits + "a.service": runs + wanted + "Also=b@i.service\n", usrUnits + "b@.service": runs + wanted,
		etcUnits + "b@.service.d/x.conf": timers}},
	"Also= of an alias": {"a.service", tree{usrUnits + "a.service": runs + wanted + "Also=b.service\n", usrUnits + "b.service": "-> c.service", usrUnits + "c.service": runs + wanted,
		etcUnits + "b.service.d/x.conf": timers, etcUnits + "c.service.d/x.conf": "[Install]\nRequiredBy=c.target\n"}},
	"Also= of one that is masked": {"a.service", tree{usrUnits + "a.service": runs + wanted + "Also=b.service\n", usrUnits + "b.service": runs + wanted, etcUnits + "b.service": "-> /dev/null",
		etcUnits + "b.service.d/x.conf": timers}},
	"Also= of one that is nowhere":                     {"a.service", tree{usrUnits + "a.service": runs + wanted + "Also=b.service\n", etcUnits + "b.service.d/x.conf": timers}},
	"Also= with a specifier, of an instance":           {"a@i.service", tree{usrUnits + "a@.service": runs + wanted + "Also=b@%i.service\n", usrUnits + "b@.service": runs + wanted}},
	"Also= of an instance by an alias of its template": {"a.service", tree{usrUnits + "a.service": runs + wanted + "Also=b@i.service\n", usrUnits + "b@.service": "-> c@.service", usrUnits + "c@.service": runs + wanted}},
	"linked":                 {"l.service", tree{"/opt/l.service": runs + wanted, etcUnits + "l.service": "-> /opt/l.service", etcUnits + "l.service.d/x.conf": timers}},
	"linked as another name": {"l.service", tree{"/opt/k.service": runs + wanted, etcUnits + "l.service": "-> ../../../opt/k.service"}},
	"an alias":               {"b.service", tree{usrUnits + "b.service": "-> c.service", usrUnits + "c.service": runs + wanted, etcUnits + "b.service.d/x.conf": timers}},
}

// TestEnableIsSystemctls compares what comes of a unit that is to be enabled under another root
// with what systemctl enable makes of it. It needs the package systemd, running or not.
func TestEnableIsSystemctls(t *testing.T) {
	systemctl, err := exec.LookPath("systemctl")
	if err != nil {
		t.Fatalf("%v: install the package systemd, which has it", err)
	}
	for name, c := range enableCases {
		t.Run(name, func(t *testing.T) {
			theirs, ours := c.tree.root(t), c.tree.root(t)
			before := linksIn(t, ours)
			if out, err := exec.Command(systemctl, "--root="+theirs, "enable", c.unit).CombinedOutput(); err != nil {
				t.Fatalf("systemctl enable: %v\n%s", err, out)
			}
			enabled := state(t, desired.OwnerOSC, []desired.Resource{&desired.Unit{Name: c.unit, Enablement: desired.Enabled}})
			apply(t, ours, enabled)
			if d := cmp.Diff(linksIn(t, theirs), linksIn(t, ours)); d != "" {
				t.Error(d)
			}
			if p, err := engine(t, ours).Plan(t.Context(), enabled); err != nil || !p.Empty() {
				t.Errorf("the next plan: %v, %v", p, err)
			}
			apply(t, ours, state(t, desired.OwnerOSC, nil))
			if d := cmp.Diff(before, linksIn(t, ours)); d != "" {
				t.Errorf("when it is no longer wanted: %s", d)
			}
		})
	}
}

func engine(t *testing.T, root string) *converge.Engine {
	t.Helper()
	h, err := machine.New(root)
	if err != nil {
		t.Fatal(err)
	}
	return converge.New(converge.Options{Host: h, Command: "test", Workers: 1, Offline: true})
}

func apply(t *testing.T, root string, st *desired.State) {
	t.Helper()
	if _, err := engine(t, root).Apply(t.Context(), st); err != nil {
		t.Fatal(err)
	}
}

// root makes a root directory with the files.
func (t tree) root(tt *testing.T) string {
	tt.Helper()
	root := tt.TempDir()
	if err := os.MkdirAll(filepath.Join(root, etcUnits), 0o755); err != nil {
		tt.Fatal(err)
	}
	for p, text := range t {
		p = filepath.Join(root, p)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			tt.Fatal(err)
		}
		target, isLink := strings.CutPrefix(text, "-> ")
		err := error(nil)
		if isLink {
			err = os.Symlink(target, p)
		} else {
			err = os.WriteFile(p, []byte(text), 0o644)
		}
		if err != nil {
			tt.Fatal(err)
		}
	}
	return root
}

// linksIn are the links below /etc/systemd/system of a root, with their targets.
func linksIn(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(filepath.Join(root, etcUnits), func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.Type() != fs.ModeSymlink {
			return err
		}
		out[strings.TrimPrefix(p, root)], err = os.Readlink(p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
