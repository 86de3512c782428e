package converge_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
)

// hostname is a kind of this file's own: the machine's name, at boot and now.
type hostname struct {
	desired.Base
	value string
}

func (n *hostname) ID() desired.ID      { return "hostname:machine" }
func (n *hostname) Kind() string        { return "hostname" }
func (n *hostname) FilePaths() []string { return []string{nameFile} }

func (n *hostname) Validate() error {
	if n.value == "" {
		return errors.New("a machine has a name")
	}
	return nil
}

const (
	nameFile = "/etc/hostname"
	nameLive = "/proc/sys/kernel/hostname"
)

// naming is its folder's worth of code: it stands for no other kind.
type naming struct{}

var _ kind.Remover = naming{}

func (naming) Name() string    { return "hostname" }
func (naming) Pass() kind.Pass { return kind.Tree }

func (naming) Names(v *kind.View, r desired.Resource) []string {
	return []string{v.Real(nameFile), string(r.ID())}
}

func (naming) Observe(_ context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	want := r.(*hostname).value
	info, err := v.Lstat(nameFile)
	if err != nil {
		return err
	}
	q := &kind.Change{Type: ledger.File, Path: v.Real(nameFile), Content: desired.Text(want + "\n"), Attrs: host.Attributes{Mode: 0o644}}
	if err := v.Want(t, q, info); err != nil || v.Offline {
		return err
	}
	live, err := nameNow(v)
	if err != nil {
		return err
	}
	if err := v.ClaimLive(t, string(r.ID()), want, live, kind.Equal); err != nil || live == want {
		return err
	}
	t.Act(kind.VerbSet, "is "+live+", want "+want, kind.DisruptNone)
	t.Live = func(context.Context) error { return v.Host.WriteValue(nameLive, []byte(want+"\n")) }
	return nil
}

func (naming) Remove(_ context.Context, v *kind.View, t *kind.Task, _ string, e ledger.Entry) error {
	live, err := nameNow(v)
	if err != nil || live == e.Was.Value {
		return err
	}
	t.Act(kind.VerbRestore, "is "+live+", was "+e.Was.Value, kind.DisruptNone)
	t.Live = func(context.Context) error { return v.Host.WriteValue(nameLive, []byte(e.Was.Value+"\n")) }
	return nil
}

func nameNow(v *kind.View) (string, error) {
	data, _, err := v.ReadFile(nameLive)
	return strings.TrimSpace(string(data)), err
}

func named() *machine {
	h := newMachine()
	h.Put(nameFile, "image\n", 0o644)
	h.Value(nameLive, "image\n")
	return h
}

// renaming is an engine that knows the kind; another that does not says so.
func renaming(h host.Host) *converge.Engine {
	return engine(h, &providers{}, func(o *converge.Options) { o.Kinds = []kind.Kind{naming{}} })
}

// names is what the kind is about: content of the file, live value.
func names(h *machine) [2]string {
	at, err := h.ReadFile(nameFile)
	must(err)
	now, err := h.ReadFile(nameLive)
	must(err)
	return [2]string{strings.TrimSpace(string(at)), strings.TrimSpace(string(now))}
}

// A kind is one file: the engine plans, applies, resumes after a kill anywhere,
// keeps what was there, and gives it back, and knows nothing of the kind.
func TestKindOfItsOwn(t *testing.T) {
	h := named()
	s := sealed(t, &hostname{value: "node-1"})
	if _, err := engine(h, &providers{}).Plan(t.Context(), s); err == nil || !strings.Contains(err.Error(), `no kind "hostname"`) {
		t.Errorf("without the kind: %v", err)
	}
	p, err := renaming(h).Plan(t.Context(), s)
	if diff := cmp.Diff([]string{"update hostname:machine", "set hostname:machine"}, verbs(p)); diff != "" || err != nil {
		t.Fatal(diff, err)
	}
	for _, step := range []struct {
		of   *desired.State
		want [2]string
	}{
		{s, [2]string{"node-1", "node-1"}},
		{sealed(t, &hostname{value: "node-2"}), [2]string{"node-2", "node-2"}},
		{sealed(t), [2]string{"image", "image"}},
	} {
		if _, err := renaming(h).Apply(t.Context(), step.of); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, names(h)); diff != "" {
			t.Error(diff)
		}
		if p, err := renaming(h).Plan(t.Context(), step.of); err != nil || !p.Empty() {
			t.Errorf("then there is %v, %v", verbs(p), err)
		}
	}
}

// Another contract's wish is refused by name, and shared where it is the same.
func TestKindOfItsOwnHasOwners(t *testing.T) {
	h := named()
	for _, o := range []desired.Owner{desired.OwnerAKS, desired.OwnerOSC} {
		if _, err := renaming(h).Apply(t.Context(), of(o, sealed(t, &hostname{value: "node-1"}))); err != nil {
			t.Fatal(err)
		}
	}
	_, err := renaming(h).Apply(t.Context(), of(desired.OwnerOSC, sealed(t, &hostname{value: "other"})))
	refused(t, err, nameFile, desired.OwnerOSC, desired.OwnerAKS)
	for _, o := range []desired.Owner{desired.OwnerAKS, desired.OwnerOSC} {
		if want := [2]string{"node-1", "node-1"}; names(h) != want {
			t.Errorf("before %s went: %v", o, names(h))
		}
		if _, err := renaming(h).Apply(t.Context(), of(o, sealed(t))); err != nil {
			t.Fatal(err)
		}
	}
	if want := [2]string{"image", "image"}; names(h) != want {
		t.Errorf("when both are gone: %v", names(h))
	}
}

// Killed at any effect of coming, changing and going.
func TestKindOfItsOwnKilledAnywhere(t *testing.T) {
	steps := []*desired.State{sealed(t, &hostname{value: "node-1"}), sealed(t, &hostname{value: "node-2"}), sealed(t)}
	want := [][2]string{{"node-1", "node-1"}, {"node-2", "node-2"}, {"image", "image"}}
	for i := range steps {
		for n, hit := 1, true; hit; n++ {
			h := named()
			for _, s := range steps[:i] {
				if _, err := renaming(h).Apply(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
			_, _ = renaming(in).Apply(t.Context(), steps[i])
			hit = in.Hit() != nil
			h.Kill()
			for _, s := range []*desired.State{steps[i], sealed(t)} {
				if _, err := renaming(h).Apply(t.Context(), s); err != nil {
					t.Fatalf("step %d, killed at effect %d: %v", i, n, err)
				}
				if p, err := renaming(h).Plan(t.Context(), s); err != nil || !p.Empty() {
					t.Fatalf("step %d, killed at effect %d: %v, %v", i, n, verbs(p), err)
				}
				if s == steps[i] && names(h) != want[i] {
					t.Fatalf("step %d, killed at effect %d: %v", i, n, names(h))
				}
			}
			if names(h) != want[2] {
				t.Fatalf("step %d, killed at effect %d, withdrawn: %v", i, n, names(h))
			}
		}
	}
}
