package converge_test

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"

	"github.com/berth-dev/berth/internal/desired"
	realhost "github.com/berth-dev/berth/internal/host/machine"
)

// huge is the size of a file that no plan may hold, in bytes.
const huge = 512 << 20

// What somebody put at a name is compared by its size first and never held: a file of
// 512 MB, which takes no room on the disk, costs a plan no memory to speak of, whatever
// the name is for.
func TestPlanOfAHugeFile(t *testing.T) {
	const definition = "/etc/systemd/system/huge.service"
	for name, c := range map[string]struct {
		at string
		r  desired.Resource
	}{
		"file":          {"/etc/huge", managed("/etc/huge", "small\n")},
		"secret":        {"/etc/huge", &desired.File{Path: "/etc/huge", Content: desired.SecretBytes([]byte("x")), Mode: 0o600, Life: desired.Managed}},
		"seed":          {"/etc/huge", &desired.File{Path: "/etc/huge", Content: desired.Text("x"), Mode: 0o644, Life: desired.Seed}},
		"link":          {"/etc/huge", &desired.Link{Path: "/etc/huge", Target: "elsewhere"}},
		"serving pair":  {"/etc/huge", &desired.ServingCertificate{CertFile: "/etc/huge", KeyFile: "/etc/key", Names: []string{"n1"}}},
		"block":         {"/etc/huge", &desired.Block{Path: "/etc/huge", Name: "a", Lines: "A=1\n", Mode: 0o644}},
		"bundle of CAs": {caBundle, anchor(t, "ca")},
		"unit":          {definition, &desired.Unit{Name: "huge.service", Enablement: desired.Enabled}},
		"drop-in":       {definition + ".d/a.conf", &desired.Unit{Name: "huge.service", Enablement: desired.Enabled}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, name := range []string{"/usr/sbin/update-ca-certificates", c.at} {
				must(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
				must(os.WriteFile(filepath.Join(root, name), nil, 0o755))
			}
			must(os.Truncate(filepath.Join(root, c.at), huge))
			h, err := realhost.New(root)
			must(err)
			var before, after goruntime.MemStats
			goruntime.ReadMemStats(&before)
			_, err = engineOffline(h, &providers{}).Plan(t.Context(), sealed(t, c.r))
			goruntime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
				t.Errorf("the plan took %d MB; %v", used>>20, err)
			}
		})
	}
}
