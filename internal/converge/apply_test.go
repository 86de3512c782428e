package converge_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

func verbs(p *converge.Plan) []string {
	out := []string{}
	for _, a := range p.Actions {
		out = append(out, string(a.Verb)+" "+string(a.ID))
	}
	return out
}

func TestApplyMakesANodeAndThenNothing(t *testing.T) {
	h, p := newMachine(), &providers{}
	st := sampleState(t)
	res, err := engine(h, p).Apply(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Plan.Actions) == 0 || len(res.Timeline) == 0 {
		t.Fatal("nothing was done")
	}
	var jobs []string
	for _, j := range h.Jobs() {
		jobs = append(jobs, j.String())
	}
	if diff := cmp.Diff([]string{"start containerd.service", "start kubelet.service"}, jobs); diff != "" {
		t.Fatal(diff)
	}
	plan, err := engine(h, p).Plan(t.Context(), sampleState(t))
	if err != nil || !plan.Empty() {
		t.Fatalf("a second plan has %v, %v", verbs(plan), err)
	}
	probes := p.probes
	if _, err := engine(h, p).Apply(t.Context(), sampleState(t)); err != nil {
		t.Fatal(err)
	}
	if p.probes != probes+1 {
		t.Error("a check must run every time")
	}
	if _, err := h.Lstat(bootstrap); err == nil {
		t.Error("the bootstrap kubeconfig was written though a certificate was there")
	}
}

func applied(t *testing.T) (*providers, *machine) {
	t.Helper()
	h, p := newMachine(), &providers{}
	if _, err := engine(h, p).Apply(t.Context(), sampleState(t)); err != nil {
		t.Fatal(err)
	}
	h.ForgetJobs()
	return p, h
}

// Each way in which a machine may drift is seen as just that, repaired, and
// restarts only what it concerns.
func TestDrift(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(h *machine)
		plan []string
		jobs string
	}{
		"file edited": {func(h *machine) { h.Put("/etc/default/kubelet", "A=2\n", 0o600) },
			[]string{"update file:/etc/default/kubelet"}, ""},
		"file removed":  {func(h *machine) { must(h.Remove("/etc/kubernetes/azure.json")) }, []string{"create file:/etc/kubernetes/azure.json"}, ""},
		"file chmodded": {func(h *machine) { must(h.Chmod("/etc/default/kubelet", 0o644)) }, []string{"update file:/etc/default/kubelet"}, ""},
		"file chowned":  {func(h *machine) { must(h.Chown("/etc/default/kubelet", 7, 7)) }, []string{"update file:/etc/default/kubelet"}, ""},
		"seed edited":   {func(h *machine) { h.Put("/etc/kubernetes/notes", "mine\n", 0o644) }, []string{}, ""},
		"directory":     {func(h *machine) { must(h.Chmod("/etc/kubernetes/manifests", 0o755)) }, []string{"update directory:/etc/kubernetes/manifests"}, ""},
		"link moved": {func(h *machine) {
			must(h.Remove("/var/log/azure/latest"))
			h.PutLink("other", "/var/log/azure/latest", 0)
		}, []string{"update link:/var/log/azure/latest"}, ""},
		"unit stopped": {func(h *machine) { must(h.StopUnit(tctx, "kubelet.service")) }, []string{"start unit:kubelet.service"}, "start kubelet.service"},
		"unit disabled": {func(h *machine) { must(h.Remove("/etc/systemd/system/multi-user.target.wants/kubelet.service")) },
			[]string{"enable unit:kubelet.service"}, ""},
		"unit masked": {func(h *machine) {
			must(h.Symlink("/dev/null", "/etc/systemd/system/containerd.service"))
			must(h.StopUnit(tctx, "containerd.service"))
		}, []string{"unmask unit:containerd.service", "start unit:containerd.service"}, "start containerd.service"},
		"definition removed": {func(h *machine) { must(h.Remove("/etc/systemd/system/kubelet.service")) },
			[]string{"create file:/etc/systemd/system/kubelet.service", "reload unit:kubelet.service"}, ""},
		"definition edited, loaded and put back": {func(h *machine) {
			h.Put("/etc/systemd/system/kubelet.service", kubeletUnit+"#", 0o644)
			must(h.DaemonReload(tctx))
			h.Put("/etc/systemd/system/kubelet.service", kubeletUnit, 0o644)
			must(h.SetXattr("/etc/systemd/system/kubelet.service", host.ProvenanceName, sumOf(kubeletUnit))) // a copy of berth's
		}, []string{"reload unit:kubelet.service"}, ""},
		"unit masked but running": {func(h *machine) {
			must(h.Symlink("/dev/null", "/etc/systemd/system/containerd.service"))
			must(h.DaemonReload(tctx))
		}, []string{"unmask unit:containerd.service", "reload unit:containerd.service"}, ""},
		"definition edited and loaded": {func(h *machine) {
			h.Put("/etc/systemd/system/kubelet.service", kubeletUnit+"#", 0o644)
			must(h.DaemonReload(tctx))
			must(h.RestartUnit(tctx, "kubelet.service"))
		}, []string{"update file:/etc/systemd/system/kubelet.service", "restart unit:kubelet.service"}, "restart kubelet.service"},
		"foreign drop-in": {func(h *machine) {
			h.Put("/etc/systemd/system/kubelet.service.d/50-admin.conf", "[Service]\nNice=5\n", 0o644)
		}, []string{"restart unit:kubelet.service"}, "restart kubelet.service"},
		"sysctl":          {func(h *machine) { h.Value("/proc/sys/net/ipv4/ip_forward", "0") }, []string{"set sysctl:net.ipv4.ip_forward"}, ""},
		"credential gone": {func(h *machine) { must(h.Remove(kubeconfig)) }, []string{"issue credential:" + kubeconfig, "restart unit:kubelet.service"}, "restart kubelet.service"},
		"serving key gone": {func(h *machine) { must(h.Remove("/etc/kubernetes/certs/kubeletserver.key")) },
			[]string{"issue serving:/etc/kubernetes/certs/kubeletserver.crt"}, ""},
		"bootstrap file appears": {func(h *machine) { h.Put(bootstrap, "x", 0o600) }, []string{"delete file:" + bootstrap}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, h := applied(t)
			want := tree(h, "/etc", "/var", "/opt", "/usr")
			c.do(h)
			h.ForgetJobs()
			plan, err := engine(h, p).Plan(t.Context(), sampleState(t))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.plan, verbs(plan)); diff != "" {
				t.Fatal(diff)
			}
			if _, err := engine(h, p).Apply(t.Context(), sampleState(t)); err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(joinJobs(h)); got != c.jobs {
				t.Errorf("jobs %q, want %q", got, c.jobs)
			}
			plan, err = engine(h, p).Plan(t.Context(), sampleState(t))
			if err != nil || !plan.Empty() {
				t.Fatalf("plan after repair: %v, %v", verbs(plan), err)
			}
			checkLoaded(t, h)
			switch {
			case name == "seed edited", name == "foreign drop-in":
			case strings.HasPrefix(name, "unit masked"): // the mask is kept for its maker
				if diff := cmp.Diff(others(h), others(settled(t))); diff != "" {
					t.Error(diff)
				}
			default:
				if diff := cmp.Diff(want, tree(h, "/etc", "/var", "/opt", "/usr")); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// checkLoaded proves that systemd would start the units as they are defined.
func checkLoaded(t *testing.T, h *machine) {
	t.Helper()
	for _, u := range []string{"containerd.service", "kubelet.service"} {
		if s, err := h.Unit(tctx, u); err != nil || s.NeedDaemonReload || s.LoadState != "loaded" {
			t.Errorf("%s is %s, needs reload: %v, %v", u, s.LoadState, s.NeedDaemonReload, err)
		}
	}
}

func joinJobs(h *machine) string {
	var b strings.Builder
	for _, j := range h.Jobs() {
		fmt.Fprintln(&b, j)
	}
	return b.String()
}

// A change of the contract restarts what it concerns and nothing else.
func TestChangeRestartsOnlyItsUnit(t *testing.T) {
	p, h := applied(t)
	st := sampleState(t, func(s *desired.State) {
		for _, r := range s.Resources {
			if f, ok := r.(*desired.File); ok && f.Path == "/etc/default/kubelet" {
				f.Content = desired.Text("A=3\n")
			}
		}
	})
	res, err := engine(h, p).Apply(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"update file:/etc/default/kubelet", "restart unit:kubelet.service"}, verbs(res.Plan)); diff != "" {
		t.Fatal(diff)
	}
	if got := joinJobs(h); got != "restart kubelet.service\n" {
		t.Fatalf("jobs %q", got)
	}
}

// What fails in stage leaves the machine as it was.
func TestStageFailureChangesNothing(t *testing.T) {
	for name, p := range map[string]*providers{
		"check fails":  {probe: errors.New("no route")},
		"token is bad": {issue: errors.New("401")},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			before := tree(h)
			_, err := engine(h, p).Apply(t.Context(), sampleState(t))
			var act *converge.ActionError
			if !errors.As(err, &act) {
				t.Fatalf("error %v", err)
			}
			after := tree(h)
			for _, own := range []string{"/run/berth", "/run/berth/units", "/run/berth/lock", "/var/lib/berth", "/var/lib/berth/originals", ledgerFile} {
				delete(after, own)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Fatal(diff)
			}
			if len(h.Jobs()) > 0 {
				t.Fatalf("jobs %v", h.Jobs())
			}
		})
	}
}

// What is no longer wanted goes; what berth replaced comes back; what was
// changed by others stays.
func TestRemoval(t *testing.T) {
	p, h := applied(t)
	h.Put("/etc/default/kubelet", "A=edited\n", 0o600)
	empty := &desired.State{Owner: desired.OwnerAKS}
	other, err := engine(h, p).Plan(t.Context(), &desired.State{Owner: desired.OwnerOSC})
	if err != nil || !other.Empty() {
		t.Fatalf("another owner's plan removes %v, %v", verbs(other), err)
	}
	res, err := engine(h, p).Apply(t.Context(), empty)
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.ReadFile("/etc/containerd/config.toml")
	if err != nil || string(got) != "version = 2\n" {
		t.Errorf("the original is %q, %v", got, err)
	}
	if _, err := h.Lstat("/etc/systemd/system/kubelet.service"); err == nil {
		t.Error("the unit's definition is still there")
	}
	if st := h.Units()["kubelet.service"]; st.ActiveState == "active" {
		t.Error("kubelet still runs without a definition")
	}
	if _, err := h.Lstat("/etc/default/kubelet"); err != nil || len(res.Plan.Kept) == 0 {
		t.Errorf("an edited file must stay and be remarked: %v, %v", err, res.Plan.Kept)
	}
	plan, err := engine(h, p).Plan(t.Context(), empty)
	if err != nil || !plan.Empty() {
		t.Fatalf("plan after removal: %v, %v", verbs(plan), err)
	}
}

func TestTwoOwners(t *testing.T) {
	p, h := applied(t)
	st := &desired.State{Owner: desired.OwnerOSC}
	st.Add(&desired.File{Path: "/etc/default/kubelet", Content: desired.Text("B=1\n"), Mode: 0o600, Life: desired.Managed})
	if err := st.Seal(); err != nil {
		t.Fatal(err)
	}
	_, err := engine(h, p).Plan(t.Context(), st)
	var owned *converge.OwnedElsewhereError
	if !errors.As(err, &owned) || owned.Other != desired.OwnerAKS {
		t.Fatalf("error %v", err)
	}
}

func TestSecretsStayOutOfPlans(t *testing.T) {
	h, p := newMachine(), &providers{}
	h.Put("/etc/kubernetes/azure.json", "old hunter2", 0o600)
	st := sampleState(t, func(s *desired.State) {
		for _, r := range s.Resources {
			if f, ok := r.(*desired.File); ok && f.Path == "/etc/kubernetes/azure.json" {
				f.Content = desired.SecretBytes([]byte("new hunter2"))
			}
		}
	})
	plan, err := engine(h, p).Plan(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%+v", plan); strings.Contains(text, "hunter2") || !strings.Contains(text, "REDACTED#") {
		t.Fatal(text)
	}
}
