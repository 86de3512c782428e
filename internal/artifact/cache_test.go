package artifact

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// install stages an artifact and gives its files their names.
func install(t *testing.T, f *Fetcher, h host.Host, a *desired.Artifact) bool {
	t.Helper()
	got, err := f.Stage(t.Context(), h, a)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range a.Files {
		if err := host.Commit(h, file.Path); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Lstat(host.TempName(file.Path)); err == nil {
			t.Fatalf("%s is still there", host.TempName(file.Path))
		}
	}
	return got.Cached
}

func twoPrograms(t *testing.T) (content []byte, files []desired.ArtifactFile) {
	t.Helper()
	return gzipOf(t, tarOf(t, tarMember{name: "a", content: "A"}, tarMember{name: "b", content: "B"})), []desired.ArtifactFile{
		{Member: "a", Path: "/opt/a", Mode: 0o755}, {Member: "b", Path: "/opt/b", Mode: 0o755}}
}

func TestCacheCostsNoRequest(t *testing.T) {
	content, files := twoPrograms(t)
	s := newSite(t, always(content))
	for _, tc := range []struct {
		name string
		a    *desired.Artifact
	}{
		{"by digest", &desired.Artifact{Name: "cni", URLs: []string{s.tls.URL + "#sha256=" + sumOf(content)}, Files: files}},
		{"by version", &desired.Artifact{Name: "cni", Version: "1.2.3", URLs: []string{s.tls.URL}, Files: files}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := machine()
			f := s.fetcher(Options{})
			if install(t, f, m, tc.a) {
				t.Error("out of an empty cache")
			}
			before := s.hits.Load()
			for _, lose := range [][]string{{"/opt/a", "/opt/b"}, {"/opt/b"}, {}} {
				for _, p := range lose {
					if err := m.Remove(p); err != nil {
						t.Fatal(err)
					}
				}
				if !install(t, f, m, tc.a) || s.hits.Load() != before {
					t.Errorf("without %v: %d requests", lose, s.hits.Load()-before)
				}
				if tree := m.Tree("/opt"); tree["/opt/a"] != "-rwxr-xr-x 0:0 A" || tree["/opt/b"] != "-rwxr-xr-x 0:0 B" {
					t.Errorf("without %v: %v", lose, tree)
				}
			}
			other := *tc.a
			other.Files = append(files[:1:1], desired.ArtifactFile{Member: "b", Path: "/opt/b", Mode: 0o700})
			if install(t, f, m, &other) || s.hits.Load() != before+1 {
				t.Error("another mode came out of the cache")
			}
		})
	}
}

// What was changed by hand is not used: neither through the cache's own name nor
// through that of the installed program.
func TestDamagedCacheIsFetchedAgain(t *testing.T) {
	content, files := twoPrograms(t)
	s := newSite(t, always(content))
	a := &desired.Artifact{Name: "cni", URLs: []string{s.tls.URL + "#sha256=" + sumOf(content)}, Files: files}
	dir := path.Join(artifactDir, sumOf(content))
	for name, damage := range map[string]func(*memory.Host){
		"content":     func(m *memory.Host) { m.Put(dir+"/1", "evil", 0o755) },
		"mode":        func(m *memory.Host) { _ = m.Chmod("/opt/a", 0o777) },
		"owner":       func(m *memory.Host) { _ = m.Chown("/opt/b", 1000, 1000) },
		"missing":     func(m *memory.Host) { _ = m.Remove(dir + "/0") },
		"description": func(m *memory.Host) { m.Put(dir+"/entry.json", "{", 0o600) },
		"another's":   func(m *memory.Host) { m.Put(dir+"/entry.json", `{"sha256":"x"}`, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			m := machine()
			f := s.fetcher(Options{})
			install(t, f, m, a)
			damage(m)
			if install(t, f, m, a) {
				t.Error("used")
			}
			if tree := m.Tree("/opt"); tree["/opt/a"] != "-rwxr-xr-x 0:0 A" || tree["/opt/b"] != "-rwxr-xr-x 0:0 B" {
				t.Errorf("%v", tree)
			}
			if !install(t, f, m, a) {
				t.Error("not kept again")
			}
		})
	}
}

func TestCacheIsBounded(t *testing.T) {
	m := memory.New()
	sizes := map[string]int{"/k1": 600, "/k2": 500, "/k3": 400}
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(strings.Repeat(r.URL.Path, sizes[r.URL.Path])))
	})
	f := s.fetcher(Options{CacheBytes: 1600})
	take := func(name string) bool {
		content := strings.Repeat(name, sizes[name])
		return install(t, f, m, kubelet("", s.tls.URL+name+"#sha256="+sumOf([]byte(content))))
	}
	for _, name := range []string{"/k1", "/k2", "/k3"} {
		take(name) // each takes the installed name from the one before
	}
	if names, _ := m.ReadDir(artifactDir); len(names) != 2 {
		t.Errorf("%d entries", len(names))
	}
	if !take("/k2") {
		t.Error("k2 was dropped")
	}
	if take("/k1") {
		t.Error("k1 was kept")
	}
}

// TestFaultsOfTheCache breaks each of its effects: what is staged is the same.
func TestFaultsOfTheCache(t *testing.T) {
	content, files := twoPrograms(t)
	s := newSite(t, always(content))
	a := &desired.Artifact{Name: "cni", URLs: []string{s.tls.URL + "#sha256=" + sumOf(content)}, Files: files}
	plain := effect.Inject(machine(), nil)
	if _, err := s.fetcher(Options{CacheBytes: -1}).Stage(t.Context(), plain, a); err != nil {
		t.Fatal(err)
	}
	full := effect.Inject(machine(), nil)
	if _, err := s.fetcher(Options{}).Stage(t.Context(), full, a); err != nil {
		t.Fatal(err)
	}
	if full.Count() <= plain.Count() {
		t.Fatalf("%d effects, %d of them without the cache", full.Count(), plain.Count())
	}
	for n := plain.Count() + 1; n <= full.Count(); n++ {
		m := machine()
		_, err := s.fetcher(Options{}).Stage(t.Context(), effect.Inject(m, effect.Plan{{At: n, Kind: effect.Fail, Err: syscall.ENOSPC}}), a)
		if tree := m.Tree("/opt"); err != nil || tree[host.TempName("/opt/a")] == "" || tree[host.TempName("/opt/b")] == "" {
			t.Errorf("effect %d: %v, %v", n, err, tree)
		}
		for range 2 { // the next runs work, whatever was left
			install(t, s.fetcher(Options{}), m, a)
		}
		if !install(t, s.fetcher(Options{}), m, a) {
			t.Errorf("effect %d: nothing kept", n)
		}
	}
}

// After a power cut the cache holds what it likes: it is never wrong.
func TestCacheAfterAPowerCut(t *testing.T) {
	content, files := twoPrograms(t)
	s := newSite(t, always(content))
	a := &desired.Artifact{Name: "cni", URLs: []string{s.tls.URL + "#sha256=" + sumOf(content)}, Files: files}
	for seed := range uint64(100) {
		m := machine()
		install(t, s.fetcher(Options{}), m, a)
		m.PowerCut(seed)
		m.Boot()
		install(t, s.fetcher(Options{}), m, a)
		if tree := m.Tree("/opt"); tree["/opt/a"] != "-rwxr-xr-x 0:0 A" || tree["/opt/b"] != "-rwxr-xr-x 0:0 B" {
			t.Errorf("seed %d: %v", seed, tree)
		}
	}
}

// Many programs at once want the same and other things.
func TestCacheIsShared(t *testing.T) {
	content, files := twoPrograms(t)
	s := newSite(t, always(content))
	m := machine()
	var all sync.WaitGroup
	one, two := s.fetcher(Options{}), s.fetcher(Options{})
	for i := range 8 {
		all.Go(func() {
			a := &desired.Artifact{Name: "cni", URLs: []string{s.tls.URL + "#sha256=" + sumOf(content)}}
			for _, f := range files {
				f.Path += fmt.Sprint(i)
				a.Files = append(a.Files, f)
			}
			if _, err := []*Fetcher{one, two}[i%2].Stage(t.Context(), m, a); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i := range 8 {
		if got := m.Tree("/opt")[host.TempName(fmt.Sprintf("/opt/b%d", i))]; got != "-rwxr-xr-x 0:0 B" {
			t.Errorf("b%d: %q", i, got)
		}
	}
}

func TestDigestsAreRequired(t *testing.T) {
	content := []byte("KUBELET")
	s := newSite(t, always(content))
	m := memory.New()
	a := kubelet("", s.tls.URL)
	a.Version = "1.2.3"
	install(t, s.fetcher(Options{}), m, a)
	_, err := s.fetcher(Options{RequireDigests: true}).Stage(t.Context(), m, a)
	if _, ok := errors.AsType[*RefusedError](err); !ok {
		t.Errorf("got %v", err)
	}
}

func TestFileSource(t *testing.T) {
	m := memory.New()
	content := random(1 << 20)
	m.Put("/srv/kubelet", string(content), 0o644)
	f := New(Options{})
	got, err := f.Stage(t.Context(), m, kubelet("", "file:///srv/kubelet#sha256="+sumOf(content)))
	if err != nil || got.Unverified || got.Bytes != 1<<20 {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := f.Stage(t.Context(), m, kubelet("", "file:///srv/none")); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("got %v", err)
	}
	for _, url := range []string{"file:///srv/../etc/shadow", "file://host/x", "file:x", "ftp://x/y"} {
		if _, err := f.Stage(t.Context(), m, kubelet("", url)); !errors.As(err, new(*RefusedError)) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestProgramForAnotherMachine(t *testing.T) {
	other := map[string]uint16{"amd64": 183, "arm64": 62}[runtime.GOARCH]
	head := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 57)...)
	binary.LittleEndian.PutUint16(head[18:], other)
	s := newSite(t, always(head))
	m := memory.New()
	before := m.Tree("/")
	_, err := s.fetcher(Options{}).Stage(t.Context(), m, kubelet("", s.tls.URL))
	if e, ok := errors.AsType[*MismatchError](err); !ok || e.What != "architecture" || s.hits.Load() != 1 {
		t.Errorf("after %d requests: %v", s.hits.Load(), err)
	}
	if len(m.Tree("/")) != len(before) {
		t.Error("something is left")
	}
}

// What is kept is what was asked for then: not another version of the same
// digest, not what came unverified from another address.
func TestCacheIsNotTheWrongProgram(t *testing.T) {
	program := versioned(t)
	s := newSite(t, always(program))
	m := machine()
	a := kubelet("", s.tls.URL+"/old#sha256="+sumOf(program))
	a.Version = "1.23.4"
	install(t, s.fetcher(Options{}), m, a)
	next := *a
	next.Version = "9.9.9"
	before := m.Tree("/")
	if _, err := s.fetcher(Options{}).Stage(t.Context(), m, &next); !errors.As(err, new(*MismatchError)) {
		t.Errorf("got %v", err)
	}
	if after := m.Tree("/"); !maps.Equal(before, after) {
		t.Error("the machine has changed")
	}
}

func TestCacheOfAnotherAddress(t *testing.T) {
	evil, good := newSite(t, always([]byte("EVIL"))), newSite(t, always([]byte("GOOD")))
	m := machine()
	a, b := kubelet("", evil.tls.URL+"/k"), kubelet("", good.tls.URL+"/k")
	a.Version, b.Version = "1.2.3", "1.2.3"
	install(t, evil.fetcher(Options{}), m, a)
	if err := m.Remove("/usr/local/bin/kubelet"); err != nil {
		t.Fatal(err)
	}
	if install(t, good.fetcher(Options{}), m, b) || good.hits.Load() != 1 {
		t.Error("out of the cache")
	}
	if tree := m.Tree("/usr/local/bin"); tree["/usr/local/bin/kubelet"] != "-rwxr-xr-x 0:0 GOOD" {
		t.Errorf("got %v", tree)
	}
}

// acrossFileSystems has the cache on a file system of its own.
type acrossFileSystems struct{ *memory.Host }

func (acrossFileSystems) Link(string, string) error {
	return &fs.PathError{Op: "link", Path: "x", Err: syscall.EXDEV}
}

func TestCacheOnAnotherFileSystem(t *testing.T) {
	content, files := twoPrograms(t)
	s := newSite(t, always(content))
	m := acrossFileSystems{machine()}
	a := &desired.Artifact{Name: "cni", URLs: []string{s.tls.URL + "#sha256=" + sumOf(content)}, Files: files}
	install(t, s.fetcher(Options{}), m, a)
	if err := m.Remove("/opt/a"); err != nil {
		t.Fatal(err)
	}
	if !install(t, s.fetcher(Options{}), m, a) || s.hits.Load() != 1 {
		t.Errorf("%d requests", s.hits.Load())
	}
	if tree := m.Tree("/opt"); tree["/opt/a"] != "-rwxr-xr-x 0:0 A" {
		t.Errorf("got %v", tree)
	}
}

// fullOnce has no room for the first program.
type fullOnce struct {
	*memory.Host
	told bool
}

func (h *fullOnce) Create(p string) (host.File, error) {
	if p == temp && !h.told {
		h.told = true
		return nil, &fs.PathError{Op: "open", Path: p, Err: syscall.ENOSPC}
	}
	return h.Host.Create(p)
}

// What only the cache still has makes room when the disk is full.
func TestFullDiskTakesTheCache(t *testing.T) {
	content, files := twoPrograms(t)
	s := newSite(t, always(content))
	m := machine()
	old := &desired.Artifact{Name: "cni", URLs: []string{s.tls.URL + "#sha256=" + sumOf(content)}, Files: files}
	install(t, s.fetcher(Options{}), m, old)
	for _, f := range files {
		if err := m.Remove(f.Path); err != nil {
			t.Fatal(err)
		}
	}
	next := newSite(t, always([]byte("K")))
	full := &fullOnce{Host: m}
	if _, err := next.fetcher(Options{}).Stage(t.Context(), full, kubelet("", next.tls.URL)); err != nil || !full.told {
		t.Fatalf("told %v, %v", full.told, err)
	}
	if _, err := readEntry(m, sumOf(content)); err == nil {
		t.Error("the old entry is still there")
	}
}

// versioned is this test's own program, which says that it is version 1.23.4.
func versioned(t *testing.T) []byte {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	mod := regexp.MustCompile(`(\nmod\tgithub\.com/berth-dev/berth\t)([^\t\n]+)`)
	if !mod.Match(program) {
		t.Fatal("no build information")
	}
	return mod.ReplaceAllFunc(program, func(found []byte) []byte {
		head := found[:bytes.LastIndexByte(found, '\t')+1]
		version := "v1.23.4"
		if room := len(found) - len(head) - len(version); room > 0 {
			version += "+" + strings.Repeat("0", room-1)
		}
		return append(bytes.Clone(head), version...)
	})
}
