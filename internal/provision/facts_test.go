package provision

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/ssh"
	"github.com/berth-dev/berth/internal/component/swap"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/google/go-cmp/cmp"
)

// TestGatherAsksFirst: the rest is read while the address is waited for.
func TestGatherAsksFirst(t *testing.T) {
	h := memory.New()
	h.Put("/usr/bin/containerd", "x", 0o755)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	asked, read := make(chan struct{}), make(chan struct{})
	either := func(c chan struct{}) bool {
		select {
		case <-c:
			return true
		case <-ctx.Done():
			return false
		}
	}
	f, err := Gather(ctx, h, FactsSource{
		Cloud: func(context.Context) azure.Cloud {
			close(asked)
			if !either(read) {
				return azure.Cloud{}
			}
			return azure.Cloud{Address: "10.0.0.4", RotationOff: true}
		},
		Version: func(context.Context, host.Host, string) (string, error) {
			defer close(read)
			if !either(asked) {
				return "", ctx.Err()
			}
			return "2.0.0", nil
		},
	})
	if err != nil || f.NodeIP != "10.0.0.4" || !f.RotationOff || f.ContainerdVersion != "2.0.0" {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestCNIConfigured(t *testing.T) {
	for name, want := range map[string]bool{"10-azure.conflist": true, "x.conf": true, "README": false} {
		h := memory.New()
		if got := cniConfigured(h); got {
			t.Error("configured where there is nothing")
		}
		h.Put("/etc/cni/net.d/"+name, "{}", 0o644)
		if got := cniConfigured(h); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestGatherPackages(t *testing.T) {
	h := memory.New()
	want := []string{"/opt/azure-acr-credential-provider/downloads/azure-acr-credential-provider_1.34.1-1_amd64.deb", "/opt/kubectl/downloads/kubectl_1.34.1-1_amd64.deb", "/opt/kubelet/downloads/kubelet_1.34.1-1_amd64.deb", "/opt/kubelet/downloads/kubelet_1.34.2-1_amd64.deb"}
	for _, p := range []string{want[2], want[0], want[3], want[1], "/opt/other/downloads/other_1-1_amd64.deb"} {
		h.Put(p, "", 0o644)
	}
	f, err := Gather(t.Context(), h, FactsSource{})
	if diff := cmp.Diff(want, f.Packages); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
}

// Of an image's two programs the newer one counts, if it can be executed.
func TestGatherStreamingSetup(t *testing.T) {
	h := memory.New()
	for _, step := range []struct {
		path string
		mode fs.FileMode
		want string
	}{
		{"/opt/acr/bin/acr-config", 0o644, ""},
		{"/opt/acr/bin/acr-config", 0o755, "/opt/acr/bin/acr-config"},
		{"/opt/acr/tools/mirror/setup.sh", 0o644, "/opt/acr/bin/acr-config"},
		{"/opt/acr/tools/mirror/setup.sh", 0o755, "/opt/acr/tools/mirror/setup.sh"},
	} {
		h.Put(step.path, "", step.mode)
		f, err := Gather(t.Context(), h, FactsSource{})
		if err != nil || f.StreamingSetup != step.want {
			t.Errorf("%s with mode %o: %q, %v", step.path, step.mode, f.StreamingSetup, err)
		}
	}
}

// Images have units in the administrator's directory as well as in the vendor's.
func TestGatherImageUnits(t *testing.T) {
	h := memory.New()
	h.Put("/etc/systemd/system/node-exporter.service", "", 0o644)
	h.Put("/usr/lib/systemd/system/snapshot-update.timer", "", 0o644)
	h.Put("/usr/lib/systemd/system/other.timer", "", 0o644)
	h.Put("/etc/systemd/system/dhcpv6.service", "", 0o644)
	h.Put("/opt/azure/aks-log-collector.timer", "", 0o644)
	h.PutLink("/opt/azure/aks-log-collector.timer", "/etc/systemd/system/aks-log-collector.timer", 0)
	h.Put("/usr/lib/systemd/system/node-exporter-restart.path", "", 0o644)
	h.PutLink("/dev/null", "/etc/systemd/system/node-exporter-restart.path", 0)
	f, err := Gather(t.Context(), h, FactsSource{})
	if diff := cmp.Diff([]string{"aks-log-collector.timer", "node-exporter.service", "snapshot-update.timer", "dhcpv6.service"}, f.ImageUnits); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
}

func TestGatherLooksAtTheImage(t *testing.T) {
	h := memory.New()
	for range 2 { // nothing of it first
		f, err := Gather(context.Background(), h, FactsSource{})
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		resolved := false
		if _, err := h.Lstat("/opt/bin"); err == nil {
			want, resolved = []string{"kubectl-1.34.2", "kubelet-1.33.1", "kubelet-1.34.2"}, true
		}
		if diff := cmp.Diff(want, f.VersionedPrograms); diff != "" || f.Resolved != resolved {
			t.Errorf("resolved %v, %s", f.Resolved, diff)
		}
		for _, name := range []string{"kubelet", "kubelet-1.34.2", "kubelet-1.33.1", "kubectl-1.34.2", "crictl"} {
			h.Put("/opt/bin/"+name, "", 0o755)
		}
		h.Put("/run/systemd/resolve/resolv.conf", "nameserver 10.0.0.1\n", 0o644)
	}
}

// TestSSHIncludes: only what comes before every other word is sure to count.
func TestSSHIncludes(t *testing.T) {
	for text, want := range map[string]bool{
		"# comment\n\nInclude /etc/ssh/sshd_config.d/*.conf\nUsePAM yes\n":  true,
		"include \"/etc/ssh/sshd_config.d/*.conf\"\r\n":                     true,
		"Include=/etc/other/*.conf /etc/ssh/sshd_config.d/*.conf\n":         true,
		"#Include /etc/ssh/sshd_config.d/*.conf\nUsePAM yes\n":              false,
		"PubkeyAuthentication yes\nInclude /etc/ssh/sshd_config.d/*.conf\n": false,
		"Match all\nInclude /etc/ssh/sshd_config.d/*.conf\n":                false,
		"Include /etc/ssh/sshd_config.d/local.conf\n":                       false,
		"": false,
	} {
		h := memory.New()
		h.Put(ssh.Config, text, 0o644)
		h.Put("/usr/lib/ssh/sshd", "", 0o755)
		h.PutLink("/usr/lib/ssh/sshd", "/usr/bin/sshd", 0)
		f, err := Gather(t.Context(), h, FactsSource{})
		if err != nil || f.SSHIncludes != want || f.SSHServer != "/usr/bin/sshd" {
			t.Errorf("%q: %+v, %v", text, f, err)
		}
	}
	if f, err := Gather(t.Context(), memory.New(), FactsSource{}); err != nil || f.SSHIncludes || f.SSHServer != "" {
		t.Errorf("no server: %+v, %v", f, err)
	}
}

// What berth itself put into a configuration for others is no fact: the next run
// would decide otherwise.
func TestContainerdConfig(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "version = 3\n": "version = 3\n", containerd.ChangesHeader + "version = 3\n": "",
		"# BEGIN berth imports\nimports = []\n# END berth imports\nversion = 2\n": "version = 2\n",
	} {
		h := memory.New()
		h.PutDir("/etc/containerd")
		h.Put(containerd.ConfigFile, text, 0o644)
		if got := containerdConfig(h); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := containerdConfig(memory.New()); got != "" {
		t.Errorf("nothing: %q", got)
	}
}

// What an agent before this one wrote of containerd is told as it is.
func TestContainerdFiles(t *testing.T) {
	h := memory.New()
	if got := containerdFiles(h); got != nil {
		t.Error(got)
	}
	hosts := containerd.HostsFile("a.b")
	h.Put(hosts, "x = 1", 0o644)
	h.PutDir("/etc/containerd/certs.d/empty")
	h.Put(containerd.PathDropIn, "[Service]\n", 0o600)
	if d := cmp.Diff(map[string]string{hosts: "x = 1", containerd.PathDropIn: "[Service]\n"}, containerdFiles(h)); d != "" {
		t.Error(d)
	}
}

// A resource disk counts where it is mounted; what is on it does not.
func TestResourceDisk(t *testing.T) {
	disk := func(h *memory.Host) {
		h.PutLink("../../vda", resourceLink, 0)
		h.Put("/sys/class/block/vda/size", "2097152\n", 0o444)
	}
	for name, c := range map[string]struct {
		arrange func(*memory.Host)
		target  string
		bytes   int64
	}{
		"none":      {func(*memory.Host) {}, "", 0},
		"mounted":   {disk, "/", 1 << 30},
		"elsewhere": {func(h *memory.Host) { disk(h); h.PutLink("/dev/vda", resourceLink, 0) }, "/", 1 << 30},
		"unmounted": {func(h *memory.Host) { disk(h); h.PutLink("../../sdb1", resourceLink, 0) }, "", 0},
		"unmounted, with a swap file on it": {func(h *memory.Host) {
			disk(h)
			h.PutLink("../../sdb1", resourceLink, 0)
			h.Put("/sys/class/block/sdb1/size", "2097152\n", 0o444)
			h.Put(swap.SettingsFile, `{"path":"/mnt/swapfile","bytes":1073741824}`, 0o644)
		}, "/mnt", 1 << 30},
		"unmounted, with a swap file elsewhere": {func(h *memory.Host) {
			disk(h)
			h.PutLink("../../sdb1", resourceLink, 0)
			h.Put(swap.SettingsFile, `{"path":"/swapfile","bytes":1073741824}`, 0o644)
		}, "", 0},
		"no size": {func(h *memory.Host) { disk(h); h.Put("/sys/class/block/vda/size", "?", 0o444) }, "", 0},
	} {
		h := memory.New()
		c.arrange(h)
		if target, bytes := resourceDisk(t.Context(), h); target != c.target || bytes != c.bytes {
			t.Errorf("%s: %q, %d bytes", name, target, bytes)
		}
	}
}

func TestUbuntu(t *testing.T) {
	for text, want := range map[string]string{
		"ID=ubuntu\nVERSION_CODENAME=noble\n":     "noble",
		"ID=\"ubuntu\"\nVERSION_CODENAME='noble'": "noble",
		"ID=debian\nVERSION_CODENAME=bookworm\n":  "",
		"ID=ubuntu\n":                             "",
		"":                                        "",
	} {
		h := memory.New()
		h.Put("/etc/os-release", text, 0o644)
		var f component.Facts
		nameDistribution(h, &f)
		if got := f.Ubuntu; got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestFactsCutShort: facts that an ended context left out are no error of a document.
func TestFactsCutShort(t *testing.T) {
	over := errors.New("the time is over")
	for _, s := range []FactsSource{{}, {Offline: true}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		s.Images = func(host.FS) ([]component.BundledImage, error) { cancel(over); return nil, nil }
		if _, err := Gather(ctx, memory.New(), s); !errors.Is(err, over) {
			t.Errorf("offline %t: %v", s.Offline, err)
		}
	}
}
