package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
)

// What was made in Azure is undone when the node has ended, while its document is in force
// and before its Node goes, and by its own document's withdrawal alone.
func TestLeaveUndoesAzure(t *testing.T) {
	w := newWorld(t)
	undo := func(stayed ...error) func(*Options) {
		return func(o *Options) {
			forced(o)
			o.Unregister = func(context.Context, func(string)) []error {
				has := "without"
				if _, err := w.m.ReadFile("/etc/systemd/system/kubelet.service"); err == nil {
					has = "with"
				}
				w.log = append(w.log, "azure, "+has+" the document")
				return stayed
			}
		}
	}
	w.join(desired.OwnerNode)
	out, err := w.leave(undo())
	if err != nil || len(out.Stayed) > 0 || len(w.log) < 3 || !slices.Equal(w.log[len(w.log)-3:], []string{"network ", "azure, with the document", "delete n1 1"}) {
		t.Errorf("%+v, %v, %q", out, err, w.log)
	}
	w.join(desired.OwnerNode)
	why := &exitcode.Error{Err: errors.New("the machine x"), Remedy: "Give it the role."}
	if out, err := w.leave(undo(fmt.Errorf("%w", why))); err != nil || !strings.Contains(strings.Join(out.Stayed, "\n"), "undo what was made in Azure: the machine x. Give it the role.") {
		t.Errorf("%+v, %v", out, err)
	}
	w.join(desired.OwnerAKS)
	w.log = nil
	if _, err := w.leave(undo(), func(o *Options) { o.Owner = desired.OwnerAKS }); err != nil || strings.Contains(strings.Join(w.log, "\n"), "azure") {
		t.Errorf("another's document went: %v, %q", err, w.log)
	}
}

// A join that was cut off before it came to the machine itself has made things in Azure.
func TestLeaveUndoesAzureAlone(t *testing.T) {
	w := newWorld(t)
	w.m.PutDir("/var/lib/berth")
	asked := false
	if out, err := w.leave(func(o *Options) {
		o.Unregister = func(context.Context, func(string)) []error { asked = true; return nil }
	}); err != nil || out.Nothing || len(out.Stayed) > 0 || !asked {
		t.Errorf("%+v, %v, asked: %v", out, err, asked)
	}
}

// What is still in Azure is remembered, and the next leave asks again; the rest of
// berth's state goes, so that nothing of a node is looked for once more.
func TestLeaveTriesAzureAgain(t *testing.T) {
	for _, owner := range []desired.Owner{"", desired.OwnerNode} {
		w := newWorld(t)
		w.join(desired.OwnerNode)
		w.m.Put(azure.MadePath, "{}", 0o600)
		no := errors.New("away")
		asked := 0
		leave := func() (Outcome, error) {
			return w.leave(forced, func(o *Options) {
				o.Owner = owner
				o.Unregister = func(context.Context, func(string)) []error {
					if asked++; no != nil {
						return []error{no}
					}
					w.m.Remove(azure.MadePath)
					return nil
				}
			})
		}
		out, err := leave()
		if err != nil || !out.InAzure || len(out.Stayed) != 2 || !strings.HasPrefix(out.Stayed[1], azure.MadePath+": ") {
			t.Fatalf("%+v, %v", out, err)
		}
		if names, err := w.m.ReadDir("/var/lib/berth"); err != nil || len(names) != 1 {
			t.Errorf("%q, %v", names, err)
		}
		w.log, no = nil, nil
		if out, err := leave(); err != nil || out.Nothing || out.InAzure || len(out.Stayed) > 0 || asked != 2 || len(w.log) > 0 {
			t.Errorf("%+v, %v, asked %d times, %q", out, err, asked, w.log)
		}
		if _, err := w.m.Lstat("/var/lib/berth"); err == nil {
			t.Error("berth's state stays")
		}
	}
}
