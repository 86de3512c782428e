package cli

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/machine"
)

// BenchmarkPlan translates and plans a document with every field set, in a process that
// stays, below a root on disk: one with nothing in it, and one that is as the document says
// as far as it can be without a network. `make bench` runs it and names the bound.
func BenchmarkPlan(b *testing.B) {
	text, err := os.ReadFile("../contract/aks/testdata/full.json")
	if err != nil {
		b.Fatal(err)
	}
	for name, apply := range map[string]bool{"empty": false, "applied": true} {
		b.Run(name, func(b *testing.B) { benchmarkPlan(b, text, apply) })
	}
}

// ofImage is what an image brings that the plan looks for.
var ofImage = map[string]string{
	"/usr/sbin/update-ca-certificates":                      "",
	"/usr/lib/systemd/system/containerd.service":            "[Service]\nExecStart=/usr/bin/containerd\n[Install]\nWantedBy=multi-user.target\n",
	"/usr/lib/systemd/system/ssh.service":                   "[Service]\nExecStart=/usr/sbin/sshd -D\n[Install]\nWantedBy=multi-user.target\n",
	"/usr/lib/systemd/system/systemd-networkd.service":      "[Service]\nExecStart=/usr/lib/systemd/systemd-networkd\n[Install]\nWantedBy=multi-user.target\n",
	"/usr/lib/systemd/system/acr-mirror.service":            "[Service]\nExecStart=/opt/acr/bin/acr\n[Install]\nWantedBy=multi-user.target\n",
	"/usr/lib/systemd/system/overlaybd-tcmu.service":        "[Service]\nExecStart=/opt/overlaybd/bin/overlaybd-tcmu\n[Install]\nWantedBy=multi-user.target\n",
	"/usr/lib/systemd/system/overlaybd-snapshotter.service": "[Service]\nExecStart=/opt/overlaybd/snapshotter/overlaybd-snapshotter\n[Install]\nWantedBy=multi-user.target\n",
	"/etc/ssh/sshd_config":                                  "Include /etc/ssh/sshd_config.d/*.conf\n",
	"/usr/sbin/sshd":                                        "",
	"/usr/bin/containerd":                                   "",
	"/usr/bin/runc":                                         "",
}

// imageDir is a tree that holds what an image brings.
func imageDir(b testing.TB) string {
	b.Helper()
	dir := b.TempDir()
	for p, text := range ofImage {
		p = filepath.Join(dir, p)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o755); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

func imageRoot(b testing.TB) host.Host {
	b.Helper()
	h, err := machine.New(imageDir(b))
	if err != nil {
		b.Fatal(err)
	}
	return h
}

func benchmarkPlan(b *testing.B, text []byte, apply bool) {
	h := imageRoot(b)
	p := (&env{}).parts(h)
	p.inquiry.Source.Offline = true
	doc, err := p.decode(text)
	if err != nil {
		b.Fatal(err)
	}
	facts, err := p.inquiry.Facts(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if apply {
		st, err := doc.Translate(facts)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.engine(h, "benchmark", nil).Apply(b.Context(), st); err != nil {
			b.Fatal(err)
		}
	}
	actions, before := 0, processorTime(b)
	b.ReportAllocs()
	for b.Loop() {
		st, err := doc.Translate(facts)
		if err != nil {
			b.Fatal(err)
		}
		plan, err := p.engine(h, "benchmark", nil).Plan(b.Context(), st)
		if err != nil {
			b.Fatal(err)
		}
		actions = len(plan.Actions)
	}
	b.ReportMetric(float64(actions), "actions")
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// processorTime is what the process has had of the processors; beside other load it says
// more than the clock.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
