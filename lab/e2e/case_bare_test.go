package e2e

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
	"github.com/berth-dev/berth/lab/internal/site"
)

// stored is what most tests get: archives that nobody spends time to compress and inflate.
var stored struct {
	once     sync.Once
	dir      string
	archives *site.Archives
	err      error
}

func storedArchives(t *testing.T, l *lab.Lab) *site.Archives {
	t.Helper()
	stored.once.Do(func() {
		if stored.dir, stored.err = os.MkdirTemp("/var/tmp", "berth-e2e-"); stored.err == nil { // not /tmp, which may be memory
			stored.archives, stored.err = site.Pack(within(t, time.Minute), l, stored.dir, gzip.NoCompression)
		}
	})
	check(t, stored.err)
	return stored.archives
}

func servePrograms(t *testing.T, l *lab.Lab) *site.Programs {
	t.Helper()
	return serveArchives(t, l, storedArchives(t, l))
}

// serveCompressed serves archives as upstream has them.
func serveCompressed(t *testing.T, l *lab.Lab) *site.Programs {
	t.Helper()
	archives, err := site.Pack(within(t, time.Minute), l, t.TempDir(), gzip.BestSpeed)
	check(t, err)
	return serveArchives(t, l, archives)
}

func serveArchives(t *testing.T, l *lab.Lab, archives *site.Archives) *site.Programs {
	t.Helper()
	p, err := site.Serve(within(t, time.Minute), l, archives)
	check(t, err)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close server: %v", err)
		}
	})
	return p
}

// TestCaseBareImage provisions an image without any program of Kubernetes: all
// come over HTTP, verified by the digests in their addresses, once.
func TestCaseBareImage(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	reg, progs := serveImages(t, l), serveCompressed(t, l)
	cfg := nodeConfig(t, l, progs.Configure, func(c *aksnodeconfigv1.Configuration) {
		c.KubeBinaryConfig.PodInfraContainerImageUrl = reg.pushPause(t, l) // not in the image either
		c.LinuxAdminUsername, c.ProvisionOutput, c.EnableUnattendedUpgrade = "nobody", "/var/log/provision.log", true
		c.OutboundCommand = "getent ahosts " + c.ApiServerConfig.ApiServerName
	})
	n := addNode(t, l, lab.NodeConfig{Name: "case-bare", Flavour: lab.Bare, UserData: customData(t, cfg), Files: reg.trust()})
	status := runCSE(t, n)
	if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
		t.Fatal(err)
	}
	checkStatus(t, status())
	checkWorkload(t, l, reg, reg.workload, "bare-pod", n)
	for _, b := range progs.Blobs() {
		if count, bytes := progs.Count(b.Path); count != 1 || bytes != b.Size {
			t.Errorf("%s was asked for %d times, %d of %d bytes", b.Path, count, bytes, b.Size)
		}
	}
	logFetching(t, n)
	t.Run("nothing is fetched again", func(t *testing.T) { fetchesNothing(t, l, n, progs) })
	t.Run("removed programs", func(t *testing.T) { refetch(t, n, progs) })
}

// refetched breaks and repairs, which must cost a number of requests.
func refetched(t *testing.T, n *lab.Node, p *site.Programs, m mutation, requests int) {
	t.Helper()
	p.Clear()
	repair(t, n, m)
	if got := p.Requests(); len(got) != requests {
		t.Errorf("%s: requests %v, want %d", m.name, got, requests)
	}
}

// pushPause puts the sandbox image into the registry and returns its name.
func (i *images) pushPause(t *testing.T, l *lab.Lab) string {
	t.Helper()
	program := filepath.Join(filepath.Dir(l.PauseArchive()), "pause")
	if _, err := i.Push(within(t, time.Minute), "pause:1", serve.StaticImage("pause", program)); err != nil {
		t.Fatal(err)
	}
	return i.server + "/pause:1"
}

// fetchesNothing applies the same configuration once more.
func fetchesNothing(t *testing.T, l *lab.Lab, n *lab.Node, p *site.Programs) {
	p.Clear()
	planIsEmpty(t, l, n)
	if out := run(t, n, "sh", "-c", berthPath+" apply -f "+configPath+" 2>&1"); !strings.Contains(out, "no changes") {
		t.Errorf("apply: %s", out)
	}
	if r := p.Requests(); len(r) > 0 {
		t.Errorf("requests: %v", r)
	}
}

// refetch breaks each program in turn: it comes back out of the cache without a
// request, or where the cache is lost or was changed by hand, by one request; and
// what runs it starts anew.
func refetch(t *testing.T, n *lab.Node, p *site.Programs) {
	m := mutator{resources: render(t, n)}
	for _, r := range m.resources {
		if r.Kind != "artifact" {
			continue
		}
		for _, f := range r.Spec.Files {
			refetched(t, n, p, m.fetched(r, f.Path+" removed", "rm "+f.Path), 0)
		}
		f := r.Spec.Files[0].Path
		refetched(t, n, p, m.fetched(r, f+" removed with the cache", "for c in /var/lib/berth/cache/artifacts/*/0; do [ $c -ef "+f+" ] && rm -r ${c%0}; done; rm "+f), 1)
		refetched(t, n, p, m.fetched(r, f+" touched in the cache", "for c in /var/lib/berth/cache/artifacts/*/0; do [ $c -ef "+f+" ] && chmod 0700 $c; done; rm "+f), 1)
		repair(t, n, m.fetched(r, f+" edited", fmt.Sprintf("cp -p %[1]s /tmp/p; echo x >>/tmp/p; mv /tmp/p %[1]s", f)))
		repair(t, n, one(r, f+" chmodded", "chmod 0644 "+f, "update"))
	}
}

// fetched is a mutation that costs a download of the artifact.
func (m *mutator) fetched(r resource, name, script string) mutation {
	mu := mutation{name: name, script: script, plan: []string{r.ID + " fetch"}}
	for _, u := range watched {
		if slices.ContainsFunc(r.Spec.Files, func(f programFile) bool { return slices.Contains(m.usedBy(f.Path), u) }) {
			mu.plan, mu.restarts = append(mu.plan, "unit:"+u+" restart"), append(mu.restarts, u)
		}
	}
	return mu
}

// logFetching says how long a node's run waited for bytes alone.
func logFetching(t *testing.T, n *lab.Node) {
	t.Helper()
	f, err := site.ReadFetched(within(t, time.Minute), n)
	if err != nil {
		t.Error(err)
	}
	t.Logf("%s: %.0f MB in %.2f s; of %.2f s, %.2f s were waiting for bytes alone", n.Name, float64(f.Bytes)/1e6,
		f.Fetching.Seconds(), f.Whole.Seconds(), f.Waiting.Seconds())
}
