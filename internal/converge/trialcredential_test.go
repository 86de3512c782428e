package converge_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
)

const (
	keptCredential = "/var/lib/berth/contracts/aks.credential"
	pair           = "/var/lib/kubelet/pki/kubelet-client-berth.pem"
)

// move is a change of the cluster that a node joins: by the kind of credential, its
// contract is another.
type move struct {
	kubelet string
	// given: the contract brings certificate and kubeconfig.
	given bool
}

func (m move) state(t *testing.T) *desired.State {
	t.Helper()
	st := wish{m.kubelet, goodWish.Containerd}.state(t)
	var out desired.State
	out.Owner = st.Owner
	for _, r := range st.Resources {
		c, credential := r.(*desired.ClientCertificate)
		if check, ok := r.(*desired.Check); ok {
			check.Unless = desired.ClientCertificateID(kubeconfig)
		}
		switch {
		case credential && m.given:
			out.Add(&desired.File{Path: c.Kubeconfig, Content: desired.SecretBytes([]byte("https://other")), Mode: 0o600, Life: desired.Managed})
			continue
		case credential:
			c.Server = "https://other"
		}
		if f, ok := r.(*desired.File); ok && m.given && f.Life == desired.Transient {
			continue
		}
		if u, ok := r.(*desired.Unit); ok && m.given && u.Name == "kubelet.service" {
			u.After = []desired.ID{desired.UnitID("containerd.service"), desired.FileID(kubeconfig)}
		}
		out.Add(r)
	}
	if err := out.Seal(); err != nil {
		t.Fatal(err)
	}
	return &out
}

// once is the good state, whose check is needless on a machine that has joined.
func once(t *testing.T) *desired.State {
	t.Helper()
	st := goodWish.state(t)
	st.Resources[0].(*desired.Check).Unless = desired.ClientCertificateID(kubeconfig)
	return st
}

// moving is an engine that tries a move; the way back leads to the good wish.
func moving(t *testing.T, h host.Host, p *providers, edit func(*converge.Trial)) *converge.Engine {
	t.Helper()
	var trials *converge.Trial
	tried(t, h, newWish, func(tr *converge.Trial) { trials = tr })
	trials.Contract = trial.Contract{Document: []byte(`{"Kubelet":"moved"}`)}
	trials.State = func(context.Context, *trial.Contract) (*desired.State, error) { return once(t), nil }
	edit(trials)
	return engine(h, p, func(o *converge.Options) { o.Trial = trials })
}

func joinedMachine(t *testing.T) (*machine, map[string]string) {
	t.Helper()
	h := fussy(t)
	return h, credentialFiles(t, h)
}

func credentialFiles(t *testing.T, h *machine) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, p := range []string{pair, kubeconfig} {
		data, err := h.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		out[p] = string(data)
	}
	target, err := h.Readlink("/var/lib/kubelet/pki/kubelet-client-current.pem")
	must(err)
	out["current"] = target
	return out
}

// noneIsKept: no credential is left behind.
func noneIsKept(t *testing.T, h *machine) {
	t.Helper()
	if _, err := h.Lstat(keptCredential); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still kept: %v", err)
	}
}

// A credential that a change replaces, or takes away, is kept for as long as the
// change is on trial, and is back without anybody who issues one.
func TestTheOldCredentialComesBack(t *testing.T) {
	for name, m := range map[string]move{"another cluster": {"bad\n", false}, "a given certificate": {"bad\n", true}} {
		t.Run(name, func(t *testing.T) {
			h, before := joinedMachine(t)
			p := &providers{key: "2"}
			e := moving(t, h, p, func(tr *converge.Trial) {
				tr.LastLogLines = func(context.Context, string) string {
					if info, err := h.Lstat(keptCredential); err != nil || info.Mode != 0o600 {
						t.Errorf("the credential is not kept: %+v %v", info, err)
					}
					if data, err := h.ReadFile(kubeconfig); err != nil || string(data) != "https://other" {
						t.Errorf("the change is not in force: %q %v", data, err)
					}
					p.issue, p.probe = errAway, errAway
					return ""
				}
			})
			_, err := e.Apply(t.Context(), m.state(t))
			if f, ok := errors.AsType[*converge.TrialError](err); !ok || f.Revert != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(before, credentialFiles(t, h)); d != "" {
				t.Error(d)
			}
			inForce(t, h, goodWish)
			noneIsKept(t, h)
			if got := strings.Join(jobsOf(h), ", "); !strings.HasSuffix(got, "start kubelet.service") {
				t.Errorf("jobs %s", got)
			}
		})
	}
}

// The same at boot, before there is a network, and when a person's time is over.
func TestTheOldCredentialComesBackAtBoot(t *testing.T) {
	h, before := joinedMachine(t)
	p := &providers{key: "2"}
	within := func(tr *converge.Trial) { tr.Within = time.Minute }
	if _, err := moving(t, h, p, within).Apply(t.Context(), move{"A=2\n", false}.state(t)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, credentialFiles(t, h)); d == "" {
		t.Fatal("the change replaced nothing")
	}
	h.PowerCut(1)
	h.Boot()
	p.issue, p.probe = errAway, errAway
	if _, err := moving(t, h, p, within).Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, credentialFiles(t, h)); d != "" {
		t.Error(d)
	}
	noneIsKept(t, h)
}

// The same when somebody applies the last good contract while a change waits for a word.
func TestTheOldCredentialComesBackByHand(t *testing.T) {
	h, before := joinedMachine(t)
	p := &providers{key: "2"}
	within := func(tr *converge.Trial) { tr.Within = time.Minute }
	if _, err := moving(t, h, p, within).Apply(t.Context(), move{"A=2\n", false}.state(t)); err != nil {
		t.Fatal(err)
	}
	p.issue, p.probe = errAway, errAway
	e := engine(h, p, func(o *converge.Options) { o.Trial = goodWish.trial(t) })
	if _, err := e.Apply(t.Context(), once(t)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, credentialFiles(t, h)); d != "" {
		t.Error(d)
	}
	inForce(t, h, goodWish)
	noneIsKept(t, h)
	if p, err := e.Plan(t.Context(), once(t)); err != nil || !p.Empty() {
		t.Errorf("then there is %+v, %v", p, err)
	}
}

// A change that is confirmed forgets the old credential, and one that replaces none
// keeps none.
func TestNoCredentialIsLeft(t *testing.T) {
	for name, m := range map[string]*move{"replaced": {"A=2\n", false}, "untouched": nil} {
		t.Run(name, func(t *testing.T) {
			h, _ := joinedMachine(t)
			st := wish{"A=2\n", goodWish.Containerd}.state(t)
			if m != nil {
				st = m.state(t)
			}
			seen := false
			e := moving(t, h, &providers{key: "2"}, func(tr *converge.Trial) {
				tr.Await = func(context.Context, *desired.State, trial.Standing) (string, error) {
					_, err := h.Lstat(keptCredential)
					seen = err == nil
					return "", nil
				}
			})
			if _, err := e.Apply(t.Context(), st); err != nil {
				t.Fatal(err)
			}
			if seen != (m != nil) {
				t.Errorf("kept: %v", seen)
			}
			noneIsKept(t, h)
		})
	}
}

// A kept credential that does not serve any more is none: another is asked for.
func TestAnOldCredentialThatExpired(t *testing.T) {
	h, _ := joinedMachine(t)
	p := &providers{key: "2"}
	e := moving(t, h, p, func(tr *converge.Trial) {
		tr.LastLogLines = func(context.Context, string) string { p.expired = true; return "" }
	})
	_, err := e.Apply(t.Context(), move{"bad\n", false}.state(t))
	if f, ok := errors.AsType[*converge.TrialError](err); !ok || f.Revert != nil {
		t.Fatal(err)
	}
	if got := credentialFiles(t, h); !strings.HasSuffix(got[pair], "2") || got[kubeconfig] != "https://api" {
		t.Errorf("%v", got)
	}
}

// badMove is a change that does not hold.
var badMove = move{"bad\n", false}

// cutMoves cuts a change off after each of its effects; before are the credential's files of then.
func cutMoves(t *testing.T, m move, then func(n int, h *machine, before map[string]string)) {
	t.Helper()
	for n, hit := 1, true; hit; n += stride {
		h, before := joinedMachine(t)
		in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
		_, _ = moving(t, in, &providers{key: "2"}, func(*converge.Trial) {}).Apply(t.Context(), m.state(t))
		if hit = in.Hit() != nil; hit {
			then(n, h, before)
		}
	}
}

// Cut off anywhere, the way back that the next boot takes needs nobody who issues.
func TestACutMoveNeedsNoIssuer(t *testing.T) {
	cutMoves(t, badMove, func(n int, h *machine, before map[string]string) {
		h.PowerCut(uint64(n))
		h.Boot()
		away := &providers{issue: errAway, probe: errAway}
		if _, err := moving(t, h, away, func(*converge.Trial) {}).Restore(t.Context()); err != nil {
			t.Fatalf("cut at effect %d: %v", n, err)
		}
		if _, err := moving(t, h, away, func(tr *converge.Trial) { tr.Contract = goodWish.contract() }).Apply(t.Context(), once(t)); err != nil {
			t.Fatalf("cut at effect %d, then: %v", n, err)
		}
		if d := cmp.Diff(before, credentialFiles(t, h)); d != "" {
			t.Fatalf("cut at effect %d: %s", n, d)
		}
		if _, err := h.Lstat(keptCredential); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("cut at effect %d: it is still kept: %v", n, err)
		}
	})
}

// Cut off anywhere, the same change keeps what the first run kept: that may have put its own
// pair in the place of the old one, beside a kubeconfig that is still the old one.
func TestACutMoveThatIsTriedAgain(t *testing.T) {
	cutMoves(t, badMove, func(n int, h *machine, before map[string]string) {
		h.Kill()
		p := &providers{key: "3"}
		e := moving(t, h, p, func(tr *converge.Trial) {
			tr.LastLogLines = func(context.Context, string) string { p.issue, p.probe = errAway, errAway; return "" }
		})
		_, _ = e.Apply(t.Context(), badMove.state(t))
		if d := cmp.Diff(before, credentialFiles(t, h)); d != "" {
			t.Fatalf("cut at effect %d: %s", n, d)
		}
		noneIsKept(t, h)
	})
}
