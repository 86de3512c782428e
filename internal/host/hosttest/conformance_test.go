package hosttest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/hosttest"
	"github.com/berth-dev/berth/internal/host/machine"
	"github.com/berth-dev/berth/internal/host/memory"
)

// inMachine says that the test runs as root inside a machine with systemd, where
// units may be made and started and file systems mounted.
func inMachine() bool { return os.Getenv("BERTH_CONFORMANCE") == "machine" }

func modelled(decorate func(host.Host) host.Host) func(*testing.T) host.Host {
	return func(*testing.T) host.Host {
		h := memory.New()
		h.PutDir("/work")
		hosttest.Model(h)
		return decorate(h)
	}
}

func TestConformance(t *testing.T) {
	memoryOptions := hosttest.Options{
		Dir:  func(*testing.T) string { return "/work" },
		Live: true, Mounts: true, Systemd: true,
	}
	decorators := map[string]func(host.Host) host.Host{
		"memory":   func(h host.Host) host.Host { return h },
		"recorded": func(h host.Host) host.Host { return effect.Record(h) },
		"injected": func(h host.Host) host.Host { return effect.Inject(h, nil) },
	}
	for name, d := range decorators {
		t.Run(name, func(t *testing.T) { hosttest.Run(t, modelled(d), memoryOptions) })
	}
	t.Run("root directory", func(t *testing.T) { hosttest.Run(t, rooted, rootOptions) })
	t.Run("machine", func(t *testing.T) { hosttest.Run(t, real, realOptions()) })
	if inMachine() {
		t.Run("machine/units of others", func(t *testing.T) { hosttest.RunOthers(t, real) })
	}
}

// rooted is a root directory in which everything happens in /work.
func rooted(t *testing.T) host.Host {
	root := t.TempDir()
	for _, d := range []string{"work", "proc", "sys", "dev"} {
		if err := os.Mkdir(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h, err := machine.New(root)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

var rootOptions = hosttest.Options{Dir: func(*testing.T) string { return "/work" }, UID: os.Getuid()}

func real(t *testing.T) host.Host {
	h, err := machine.New("/")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func realOptions() hosttest.Options {
	return hosttest.Options{
		Dir: func(t *testing.T) string { return t.TempDir() }, UID: os.Getuid(),
		Live: true, Mounts: inMachine(), Systemd: inMachine(),
	}
}

func TestRunHangs(t *testing.T) { hosttest.RunHangs(t, real(t)) }
