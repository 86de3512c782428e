package artifact

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// FuzzUnpack feeds hostile archives: whatever they hold, only the wanted paths
// appear on the machine, and nothing at all after an error.
func FuzzUnpack(f *testing.F) {
	good := tarOf(f, tarMember{name: "dir/../bin/kubelet", content: "K"}, tarMember{name: "../../etc/passwd", content: "x"}, tarMember{"l", "/etc/shadow", '2'}, tarMember{"h", "bin/kubelet", '1'})
	f.Add(good)
	f.Add(gzipOf(f, good))
	f.Add(zstdOf(f, good))
	f.Add(tarOf(f, tarMember{"bin/kubelet", "/etc/shadow", '1'}))
	f.Add(debOf("data.tar.gz", gzipOf(f, good)))
	f.Add(rpmOf(cpioOf(tarMember{name: "./bin/kubelet", content: "K"}, tarMember{name: "../../etc/passwd", content: "x"})))
	f.Fuzz(func(t *testing.T, content []byte) {
		m := memory.New()
		before := m.Tree("/")
		a := &desired.Artifact{Name: "x", Files: []desired.ArtifactFile{{Member: "bin/kubelet", Path: "/usr/local/bin/kubelet", Mode: 0o755}}}
		files := newStaging(m)
		err := New(Options{MaxUnpacked: 1 << 22}).unpack(t.Context(), bytes.NewReader(content), files, a, &source{url: mustURL("https://x/")})
		after := m.Tree("/")
		if err == nil {
			if _, there := after[host.TempName("/usr/local/bin/kubelet")]; !there {
				t.Error("no error and no file")
			}
		}
		if err := errors.Join(files.wait(), files.remove()); err != nil {
			t.Error(err)
		}
		delete(after, host.TempName("/usr/local/bin/kubelet"))
		if diff := cmp.Diff(before, after); diff != "" {
			t.Error(diff)
		}
	})
}

func FuzzParseSource(f *testing.F) {
	f.Add("https://x/y?sig=s#sha256="+sumOf(nil), "")
	f.Add("http://x/y", sumOf(nil))
	f.Fuzz(func(t *testing.T, raw, digest string) {
		s, err := New(Options{}).parseSource(memory.New(), raw, &desired.Artifact{SHA256: digest}, nil)
		if err == nil && s.url.Scheme == "http" && s.digest == "" {
			t.Error("plain http without a digest")
		}
	})
}

func FuzzParseDigests(f *testing.F) {
	f.Add([]byte(`{"https://x": "` + sumOf(nil) + `"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseDigests(text)
		for _, digest := range list {
			if err == nil && len(digest) != 64 {
				t.Errorf("digest %q", digest)
			}
		}
	})
}

// A zstd stream may begin with a frame to skip, as pzstd writes it.
func TestSkippableFrame(t *testing.T) {
	content := append([]byte{0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4}, zstdOf(t, tarOf(t, tarMember{name: "bin/kubelet", content: "K"}))...)
	s := newSite(t, always(content))
	install(t, s.fetcher(Options{}), memory.New(), kubelet("bin/kubelet", s.tls.URL))
}
