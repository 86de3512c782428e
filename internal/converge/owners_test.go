package converge_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
)

func of(o desired.Owner, s *desired.State) *desired.State {
	s.Owner = o
	return s
}

// shared are resources of many kinds that two contracts want alike.
func shared(ca *desired.TrustAnchor) []desired.Resource {
	return append(keyless(false),
		managed("/etc/kubernetes/a", "a\n"),
		managed("/etc/containerd/config.toml", "version = 3\n"),
		&desired.Directory{Path: "/etc/kubernetes/manifests", Mode: 0o700},
		&desired.Link{Path: "/var/log/azure/latest", Target: "cluster.log"},
		&desired.ServingCertificate{CertFile: "/etc/kubernetes/s.crt", KeyFile: "/etc/kubernetes/s.key", Names: []string{"n1"}},
		kubelet("2.0.0"),
		&desired.Unit{Name: "containerd.service", Enablement: desired.Enabled},
		lines("a", "A=1\n"),
		keys("P", "1"),
		&desired.Directory{Path: "/srv/data", Mode: 0o700},
		&desired.Mount{Base: desired.Base{After: []desired.ID{desired.DirectoryID("/srv/data")}}, Source: "tmpfs", Target: "/srv/data", FSType: "tmpfs", Options: []string{"noexec"}},
		ca,
		forwarding("1"),
		&desired.Swap{Path: swapFile, Bytes: 2 * mib},
		filter(80),
		&desired.Module{Name: "br_netfilter", Evidence: []string{"/proc/sys/net/bridge/bridge-nf-call-iptables"}},
	)
}

// What two contracts want alike stays until both are gone, in whatever order
// they go, and then the machine is as it was.
func TestSharedStaysUntilTheLastGoes(t *testing.T) {
	ca := anchor(t, "ca")
	for _, first := range []desired.Owner{desired.OwnerAKS, desired.OwnerOSC} {
		t.Run(string(first)+" goes first", func(t *testing.T) {
			h := disputed()
			before := others(h)
			for _, o := range []desired.Owner{desired.OwnerAKS, desired.OwnerOSC} {
				if _, err := fetching(h).Apply(t.Context(), of(o, sealed(t, shared(ca)...))); err != nil {
					t.Fatal(err)
				}
			}
			both, second := others(h), desired.OwnerOSC
			if first == second {
				second = desired.OwnerAKS
			}
			res, err := fetching(h).Apply(t.Context(), of(first, sealed(t)))
			if err != nil || len(res.Plan.Actions)+len(res.Plan.Kept) > 0 {
				t.Fatalf("%v, %q, %v", verbs(res.Plan), res.Plan.Kept, err)
			}
			if diff := cmp.Diff(both, others(h)); diff != "" {
				t.Fatalf("after the first went: %s", diff)
			}
			if res, err = fetching(h).Apply(t.Context(), of(second, sealed(t))); err != nil || len(res.Plan.Kept) > 0 {
				t.Fatalf("%q, %v", res.Plan.Kept, err)
			}
			if diff := cmp.Diff(before, others(h)); diff != "" {
				t.Errorf("after both went: %s", diff)
			}
		})
	}
}

// A run that has nothing to do writes nothing, as whoever's it is.
func TestNothingToDoWritesNothing(t *testing.T) {
	h, ca := disputed(), anchor(t, "ca")
	h.Put("/etc/kubernetes/a", "a\n", 0o644) // the image's
	for _, o := range []desired.Owner{desired.OwnerAKS, desired.OwnerOSC} {
		if _, err := fetching(h).Apply(t.Context(), of(o, sealed(t, shared(ca)...))); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*desired.State{
		of(desired.OwnerAKS, sealed(t, shared(ca)...)), of(desired.OwnerOSC, sealed(t, shared(ca)...)),
		of(desired.OwnerOSC, sealed(t)), of(desired.OwnerAKS, sealed(t)),
	} {
		if _, err := fetching(h).Apply(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		rec := effect.Record(h)
		if _, err := fetching(rec).Apply(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		for _, e := range rec.Effects() {
			asks := strings.Contains(e.String(), "/usr/sbin/sshd (-T")
			if !strings.Contains(e.Target, "/run/berth") && !asks {
				t.Errorf("%s, %d resources: %v", s.Owner, len(s.Resources), e)
			}
		}
	}
}

// A transient file that two contracts want ends with the second of them.
func TestTransientOfTwo(t *testing.T) {
	h, p := newMachine(), &providers{}
	aks := sampleState(t)
	offline := engineOffline(h, p)
	for _, o := range []desired.Owner{desired.OwnerAKS, desired.OwnerOSC} {
		if _, err := offline.Apply(t.Context(), of(o, aks)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := engine(h, p).Apply(t.Context(), of(desired.OwnerAKS, sampleState(t))); err != nil {
		t.Fatal(err)
	}
	has(t, h, bootstrap, "token")
	if _, err := engine(h, p).Apply(t.Context(), of(desired.OwnerOSC, sampleState(t))); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Lstat(bootstrap); err == nil {
		t.Error("the bootstrap kubeconfig outlived both")
	}
}

// A seed is there for somebody else: it claims no file of another contract.
func TestSeedOfAManagedFile(t *testing.T) {
	h := newMachine()
	runs(t, h, sealed(t, managed("/etc/a", "a\n")))
	seed := managed("/etc/a", "seed\n")
	seed.Life = desired.Seed
	runs(t, h, of(desired.OwnerOSC, sealed(t, seed)))
	runs(t, h, sealed(t, managed("/etc/a", "b\n")))
	has(t, h, "/etc/a", "b\n")
}

// TestAnyMode: a contract that names no mode has a file as another contract made it, and gives
// it its own mode when it is alone.
func TestAnyMode(t *testing.T) {
	const p = "/etc/systemd/system/x.service"
	text := "[Service]\nExecStart=/bin/true\n"
	theirs := func(content string) *desired.State {
		f := managed(p, content)
		f.Mode = 0o644
		return of(desired.OwnerAKS, sealed(t, f))
	}
	ours := func(content string) *desired.State {
		f := managed(p, content)
		f.Mode, f.AnyMode = 0o600, true
		return of(desired.OwnerOSC, sealed(t, f))
	}
	mode := func(h *machine, want fs.FileMode) {
		t.Helper()
		if info, err := h.Lstat(p); err != nil || info.Mode.Perm() != want {
			t.Errorf("%v, %v, want %v", info, err, want)
		}
	}
	h := newMachine()
	runs(t, h, theirs(text))
	if plan := runs(t, h, ours(text)); !plan.Empty() {
		t.Errorf("planned %v", verbs(plan))
	}
	converged(t, h, theirs(text))
	mode(h, 0o644)
	must(h.Chmod(p, 0o640))
	runs(t, h, ours(text))
	mode(h, 0o644)
	if _, err := engine(h, &providers{}).Apply(t.Context(), ours(text+"#\n")); err == nil {
		t.Error("other content is taken for the same")
	}
	runs(t, h, of(desired.OwnerAKS, sealed(t)))
	runs(t, h, ours(text))
	mode(h, 0o600)
	converged(t, h, ours(text))
}

// A file below what is another owner's file would take that away: it is refused, or moves the
// name along.
func TestDirectoryInPlaceOfAnotherOwnersFile(t *testing.T) {
	const file, below = "/etc/foo", "/etc/foo/x"
	h := newMachine()
	runs(t, h, sealed(t, managed(file, "a\n")))
	before := others(h)
	osc := of(desired.OwnerOSC, sealed(t, managed(below, "b\n")))
	_, err := engine(h, &providers{}).Apply(t.Context(), osc)
	if e, ok := errors.AsType[*converge.OwnedElsewhereError](err); !ok || e.Path != file || e.Other != desired.OwnerAKS {
		t.Errorf("not refused: %v", err)
	}
	if d := cmp.Diff(before, others(h)); d != "" {
		t.Error(d)
	}
	res, err := engine(h, &providers{}, func(o *converge.Options) { o.TakeOver = true }).Apply(t.Context(), osc)
	if err != nil || !strings.Contains(res.Plan.Actions[0].Reason, "taken over from aks") {
		t.Errorf("%v, %+v", err, res.Plan.Actions)
	}
	has(t, h, below, "b\n")
}
