package artifact

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"

	"github.com/berth-dev/berth/internal/host/memory"
)

// cpioOf is an archive of regular files but where kind says otherwise.
func cpioOf(entries ...tarMember) []byte {
	var b bytes.Buffer
	for i, e := range append(entries, tarMember{name: cpioEnd}) {
		mode := cpioRegular | 0o755
		if e.kind != 0 {
			mode = 0o120777
		}
		fmt.Fprintf(&b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", i, mode, 0, 0, 1, 0, len(e.content), 0, 0, 0, 0, len(e.name)+1, 0)
		b.WriteString(e.name + "\x00")
		b.Write(make([]byte, padding(int64(b.Len()))))
		b.WriteString(e.content)
		b.Write(make([]byte, padding(int64(b.Len()))))
	}
	return b.Bytes()
}

// rpmOf is a package whose headers have some entries and bytes.
func rpmOf(payload []byte) []byte {
	b := bytes.NewBufferString(rpmMagic + strings.Repeat("\x00", rpmLeadSize-len(rpmMagic)))
	for _, data := range []int{13, 5} {
		b.WriteString(rpmHeaderMagic + "\x01\x00\x00\x00\x00")
		for _, n := range []uint32{2, uint32(data)} {
			_ = binary.Write(b, binary.BigEndian, n) // a buffer takes all
		}
		b.Write(make([]byte, 2*rpmEntrySize+data))
		if data == 13 {
			b.Write(make([]byte, -b.Len()&7))
		}
	}
	b.Write(payload)
	return b.Bytes()
}

func debOf(name string, data []byte) []byte {
	b := bytes.NewBufferString(debMagic)
	for _, m := range []struct {
		name string
		data []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar", []byte("odd")}, {name, data}} {
		fmt.Fprintf(b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", m.name, 0, 0, 0, "100644", len(m.data))
		b.Write(m.data)
		b.Write(make([]byte, len(m.data)%2))
	}
	return b.Bytes()
}

func xzOf(t *testing.T, plain []byte) []byte {
	t.Helper()
	return xzWith(t, xz.WriterConfig{}, plain)
}

func xzWith(t *testing.T, config xz.WriterConfig, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := config.NewWriter(&b)
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A program comes out of a package of the machine, however that is compressed.
func TestPackages(t *testing.T) {
	members := []tarMember{{name: "./usr/", kind: '5'}, {name: "./usr/bin/kubectl", content: "other"}, {name: "./usr/bin/kubelet", content: "KUBELET 1.34.1\n"}, {name: "./usr/share/odd", content: "odd"}}
	tarball, cpio := tarOf(t, members...), cpioOf(members...)
	packages := map[string][]byte{
		"plain deb": debOf("data.tar", tarball), "a slash": debOf("data.tar.gz/", gzipOf(t, tarball)),
		"plain rpm": rpmOf(cpio), "gzip rpm": rpmOf(gzipOf(t, cpio)), "zstd rpm": rpmOf(zstdOf(t, cpio)), "xz rpm": rpmOf(xzOf(t, cpio)),
	}
	made, err := filepath.Glob("testdata/*/kubelet_*") // with dpkg-deb 1.21, and with rpmbuild 4.18 from testdata/rpm/kubelet.spec
	if err != nil || len(made) != 7 {
		t.Fatalf("%v, %v", made, err)
	}
	for _, file := range made {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		packages[file] = content
	}
	for name, content := range packages {
		m := memory.New()
		m.Put("/opt/kubelet/downloads/p", string(content), 0o644)
		if _, err := New(Options{}).Stage(t.Context(), m, kubelet("usr/bin/kubelet", "file:///opt/kubelet/downloads/p")); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := m.ReadFile(temp); err != nil || string(got) != "KUBELET 1.34.1\n" {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestBadPackages(t *testing.T) {
	tarball := tarOf(t, tarMember{name: "./usr/bin/kubelet", content: "K"})
	cpio := cpioOf(tarMember{name: "./usr/bin/kubelet", content: "K"})
	whole := rpmOf(cpio)
	huge := rpmOf(nil)
	copy(huge[rpmLeadSize+8:], "\xff\xff\xff\xff")
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"no data":         {debOf("other.tar", tarball), "without data.tar"},
		"cut off":         {debOf("data.tar", tarball)[:100], "read Debian package: unexpected EOF"},
		"no header":       {[]byte(debMagic + strings.Repeat("x", 60)), "no header of a member"},
		"not in it":       {debOf("data.tar", tarOf(t, tarMember{name: "./usr/bin/x", content: "K"})), "no usr/bin/kubelet"},
		"no rpm header":   {append(bytes.Clone(whole[:rpmLeadSize]), make([]byte, 64)...), "begins otherwise"},
		"a huge header":   {huge, "a header of"},
		"cpio cut off":    {whole[:len(whole)-130], "unexpected EOF"},
		"an old cpio":     {rpmOf([]byte("070707" + strings.Repeat("0", 200))), "format newc"},
		"cpio of garbage": {rpmOf([]byte("070701" + strings.Repeat("z", 200))), "no header of a cpio"},
		"a link":          {rpmOf(cpioOf(tarMember{"./usr/bin/kubelet", "/etc/shadow", '2'})), "not a regular file"},
	} {
		m := memory.New()
		m.Put("/p", string(c.content), 0o644)
		_, err := New(Options{}).Stage(t.Context(), m, kubelet("usr/bin/kubelet", "file:///p"))
		if !errors.As(err, new(*UnpackError)) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A stream of xz may ask for gigabytes of memory: one that does needs a digest if
// it is from elsewhere. Packages of distributions do not.
func TestXZFromElsewhere(t *testing.T) {
	plain := tarOf(t, tarMember{name: "bin/kubelet", content: "K"})
	for dict, refused := range map[int]bool{8 << 20: false, 64 << 20: false, 65 << 20: true} {
		content := xzWith(t, xz.WriterConfig{DictCap: dict}, plain)
		s := newSite(t, always(content))
		_, err := s.fetcher(Options{}).Stage(t.Context(), memory.New(), kubelet("bin/kubelet", s.tls.URL))
		if !refused {
			if err != nil {
				t.Errorf("%d: %v", dict, err)
			}
			continue
		}
		if !errors.As(err, new(*UnpackError)) || !strings.Contains(err.Error(), "with a digest only") {
			t.Errorf("%d: %v", dict, err)
		}
		install(t, s.fetcher(Options{}), memory.New(), kubelet("bin/kubelet", s.tls.URL+"#sha256="+sumOf(content)))
	}
}

// Headers of `xz`, `xz -9 -T2 --block-size=1MiB` and `xz --lzma2=dict=128MiB`, and
// such as are cut off or name another filter before.
func TestModestXZ(t *testing.T) {
	const stream = "\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4F"
	for name, c := range map[string]struct {
		head string
		want bool
	}{
		"usual":          {stream + "\x02\x00\x21\x01\x16\x00\x00\x00", true},
		"many threads":   {stream + "\x03\xc0\xb7\x80\x40\x80\x80\x40\x21\x01\x1c\x00", true},
		"large":          {stream + "\x02\x00\x21\x01\x1e\x00\x00\x00", false},
		"large, threads": {stream + "\x03\xc0\xb7\x80\x40\x80\x80\x40\x21\x01\x1e\x00", false},
		"two filters":    {stream + "\x03\x01\x04\x00\x21\x01\x16\x00", false},
		"cut off":        {stream + "\x02\x00\x21", false},
		"sizes cut off":  {stream + "\x04\xc0\xff\xff", false},
		"no block":       {stream, false},
	} {
		if got := modestXZ(bufio.NewReader(strings.NewReader(c.head))); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
