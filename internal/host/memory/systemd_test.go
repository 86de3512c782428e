package memory

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host"
)

// node is a machine with a runtime and a kubelet that needs it, both enabled.
func node(t *testing.T) *Host {
	t.Helper()
	h := New()
	for _, name := range []string{"containerd", "kubelet"} {
		h.Put("/usr/bin/"+name, "program", 0o755)
		h.PutLink("/usr/lib/systemd/system/"+name+".service", "/etc/systemd/system/multi-user.target.wants/"+name+".service", 0)
	}
	h.Put("/usr/lib/systemd/system/containerd.service", "[Service]\nType=notify\nExecStart=/usr/bin/containerd\n[Install]\nWantedBy=multi-user.target\n", 0o644)
	h.Put("/usr/lib/systemd/system/kubelet.service", "[Unit]\nRequires=containerd.service\nAfter=containerd.service\n[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\n[Install]\nWantedBy=multi-user.target\n", 0o644)
	h.Put("/etc/kubelet.conf", "one", 0o644)
	h.Reads("kubelet.service", "/etc/kubelet.conf", "/etc/none")
	h.Boot()
	return h
}

func jobs(h *Host) []string {
	var out []string
	for _, j := range h.Jobs() {
		out = append(out, j.String())
	}
	return out
}

func expectJobs(t *testing.T, h *Host, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, jobs(h)); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	h.ForgetJobs()
}

func TestBootStartsInOrder(t *testing.T) {
	h := node(t)
	expectJobs(t, h, "boot containerd.service", "boot kubelet.service")
	if u := h.Units()["kubelet.service"]; u.ActiveState != "active" || u.UnitFileState != "enabled" {
		t.Errorf("kubelet is %+v", u)
	}
}

func TestBootWithoutProgram(t *testing.T) {
	h := node(t)
	must(t, h.Remove("/usr/bin/containerd"))
	h.ForgetJobs()
	h.Boot()
	expectJobs(t, h, "boot containerd.service (exit-code)")
	if u := h.Units()["kubelet.service"]; u.ActiveState != "inactive" {
		t.Errorf("kubelet is %+v", u)
	}
}

func TestRestartLog(t *testing.T) {
	h := node(t)
	before := h.Jobs()[1]
	h.ForgetJobs()
	must(t, host.WriteFile(h, "/etc/kubelet.conf", []byte("two"), host.Attributes{Mode: 0o644}))
	must(t, h.RestartUnit(t.Context(), "containerd.service"))
	after := h.Jobs()[1]
	expectJobs(t, h, "restart containerd.service", "restart kubelet.service")
	if diff := cmp.Diff(map[string]string{"/etc/kubelet.conf": "two", "/etc/none": "absent"}, after.Reads); diff != "" {
		t.Error(diff)
	}
	if before.Definition != after.Definition || before.InvocationID == after.InvocationID || before.Reads["/etc/kubelet.conf"] != "one" {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

// TestDefinitionIsTheLoadedOne shows what a restart without daemon-reload runs
// with.
func TestDefinitionIsTheLoadedOne(t *testing.T) {
	h := node(t)
	h.Put("/etc/systemd/system/kubelet.service.d/10-x.conf", "[Service]\nEnvironment=A=b\n", 0o644)
	must(t, h.RestartUnit(t.Context(), "kubelet.service"))
	must(t, h.DaemonReload(t.Context()))
	must(t, h.RestartUnit(t.Context(), "kubelet.service"))
	j := h.Jobs()
	boot, stale, fresh := j[1].Definition, j[2].Definition, j[3].Definition
	if boot != stale || stale == fresh {
		t.Errorf("definitions %.8s, %.8s, %.8s", boot, stale, fresh)
	}
}

func TestBehaviours(t *testing.T) {
	h := node(t)
	h.ForgetJobs()
	for _, c := range []struct {
		outcome Outcome
		job     string
		result  string
	}{
		{Outcome{Status: 1}, "failed", "exit-code"},
		{Outcome{Result: "timeout"}, "failed", "timeout"},
		{Outcome{Result: "oom-kill"}, "failed", "oom-kill"},
	} {
		h.Behave("containerd.service", func(Start) Outcome { return c.outcome })
		err := h.RestartUnit(t.Context(), "containerd.service")
		var job *host.JobError
		if !errors.As(err, &job) || job.Result != c.job || job.Status.Result != c.result {
			t.Errorf("%+v: %v", c.outcome, err)
		}
		must(t, h.ResetFailed(t.Context(), "containerd.service"))
	}
	h.Behave("containerd.service", func(s Start) Outcome {
		h.Put("/run/containerd.sock", s.Verb, 0o600)
		return Outcome{}
	})
	must(t, h.StartUnit(t.Context(), "kubelet.service"))
	if _, err := h.ReadFile("/run/containerd.sock"); err != nil {
		t.Error(err)
	}
}

// TestLookWhileAUnitStarts: systemd keeps a unit in memory as long as it has a job,
// whoever asks meanwhile.
func TestLookWhileAUnitStarts(t *testing.T) {
	h := New()
	h.Put("/usr/bin/x", "program", 0o755)
	h.Put("/etc/systemd/system/u.service", "[Service]\nExecStart=/usr/bin/x\n", 0o644)
	h.Behave("u.service", func(Start) Outcome {
		if _, err := h.Unit(t.Context(), "other.service"); err != nil {
			t.Error(err)
		}
		return Outcome{Hang: true}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := h.StartUnit(ctx, "u.service"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if st := h.Units()["u.service"]; st.LoadState != "loaded" || st.ActiveState != "activating" {
		t.Errorf("%+v", st)
	}
}

func TestCrash(t *testing.T) {
	h := node(t)
	h.ForgetJobs()
	h.Crash("kubelet.service", 1)
	h.Crash("containerd.service", 2)
	expectJobs(t, h, "auto-restart kubelet.service")
	if u := h.Units()["kubelet.service"]; u.NRestarts != 1 || u.ActiveState != "active" {
		t.Errorf("kubelet is %+v", u)
	}
	if u := h.Units()["containerd.service"]; u.ActiveState != "failed" || u.ExecMainStatus != 2 {
		t.Errorf("containerd is %+v", u)
	}
}

func TestOneshotRunsPrograms(t *testing.T) {
	h := New()
	var got []string
	for _, p := range []string{"/usr/bin/a", "/usr/bin/b"} {
		h.Program(p, func(c host.Command) host.Output {
			got = append(got, fmt.Sprint(c.Path, c.Args))
			return host.Output{ExitCode: len(c.Args)}
		})
	}
	h.Put("/etc/systemd/system/x.service", "[Service]\nType=oneshot\nExecStartPre=-/usr/bin/a 1 2\nExecStart=/usr/bin/b\nExecStart=/usr/bin/b \\\n  x\nExecStart=/usr/bin/a\n", 0o644)
	err := h.StartUnit(t.Context(), "x.service")
	var job *host.JobError
	if !errors.As(err, &job) || job.Status.ExecMainStatus != 1 {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]string{"/usr/bin/a[1 2]", "/usr/bin/b[]", "/usr/bin/b[x]"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDropInPrecedence(t *testing.T) {
	h := New()
	base := "/usr/lib/systemd/system/"
	h.Put(base+"a-b@.service", "[Service]\nExecStart=/usr/bin/x\n", 0o644)
	for _, p := range []string{
		base + "a-b@.service.d/10-template.conf", base + "a-.service.d/20-prefix.conf", base + "service.d/30-type.conf",
		base + "a-b@c.service.d/10-template.conf", base + "a-b@c.service.d/40-gone.conf", "/run/systemd/system/a-b@c.service.d/05-run.conf",
		base + "a-b@c.service.d/not-one.txt",
	} {
		h.Put(p, "[Service]\n", 0o644)
	}
	h.PutLink("/dev/null", "/etc/systemd/system/a-b@c.service.d/40-gone.conf", 0)
	st, err := h.Unit(t.Context(), "a-b@c.service")
	must(t, err)
	want := []string{
		"/run/systemd/system/a-b@c.service.d/05-run.conf", base + "a-b@c.service.d/10-template.conf",
		base + "a-.service.d/20-prefix.conf", base + "service.d/30-type.conf",
		"/etc/systemd/system/a-b@c.service.d/40-gone.conf",
	}
	if diff := cmp.Diff(want, st.DropInPaths); diff != "" {
		t.Error(diff)
	}
}

func TestSettings(t *testing.T) {
	s := settings{}
	s.merge("# x\n[Service]\nExecStart=/a b \\\n  c\n;y\nEnvironment=A=1\n\n[Unit]\nAfter=x.service y.service\n")
	s.merge("[Service]\nExecStart=\nExecStart=-@/d e\nEnvironment=B=2\n[Unit]\nAfter=z.service\n")
	want := settings{
		"Service.ExecStart":   {"-@/d e"},
		"Service.Environment": {"A=1", "B=2"},
		"Unit.After":          {"x.service y.service", "z.service"},
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"x.service", "y.service", "z.service"}, s.names("After")); diff != "" {
		t.Error(diff)
	}
	if e := s.exec("ExecStart")[0]; e.path != "/d" || !e.ignore {
		t.Errorf("%+v", e)
	}
}

func FuzzSettings(f *testing.F) {
	f.Add("[Service]\nExecStart=/a \\\nb\n=\n[\n]\n\\")
	f.Fuzz(func(t *testing.T, content string) {
		s := settings{}
		s.merge(content)
		for name := range s {
			s.names(name)
			s.bool(name)
			for _, v := range s[name] {
				parseExec(v)
			}
		}
	})
}

// What is no unit's name starts nothing, whatever it leads to.
func TestTemporaryNamesStartNothing(t *testing.T) {
	h := New()
	h.Put("/usr/bin/daemon", "", 0o755)
	h.Put("/etc/systemd/system/.tmp.a.service.new", "[Unit]\nWants=b.service\n[Service]\nExecStart=/usr/bin/daemon\n", 0o644)
	h.Put("/etc/systemd/system/b.service", "[Service]\nExecStart=/usr/bin/daemon\n", 0o644)
	h.PutLink("../a.service", "/etc/systemd/system/multi-user.target.wants/.tmp.a.service.new", 0)
	h.Boot()
	if jobs := h.Jobs(); len(jobs) > 0 {
		t.Error(jobs)
	}
}
