package oci

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

const debian = `
./
./usr/
./usr/bin/
./usr/bin/bash = bash
./usr/lib/
bin -> usr/bin
etc/
etc/alternatives/
etc/alternatives/tool -> /usr/lib/tool/v1/tool
usr/bin/tool -> /etc/alternatives/tool
usr/lib/tool/v1/tool = tool
`

func TestExtract(t *testing.T) {
	for name, c := range map[string]struct {
		// layers are separated by ---, the lowest one first.
		layers, wanted, want string
		// opened is how often each layer was.
		opened []int
	}{
		"one pull for all":        {"a = 1\nb = 2\nc = 3", "a c", "a=1 c=3", []int{1}},
		"names are cleaned":       {"./usr/bin/x = 1", "/usr//bin/./x", "/usr//bin/./x=1", []int{1}},
		"two names of one file":   {"a = 1", "a /a", "/a=1 a=1", []int{1}},
		"later layers win":        {"a = old\n---\na = new", "a", "a=new", []int{0, 1}},
		"only what is needed":     {"a = 1\n---\nb = 2\n---\nc = 3", "b", "b=2", []int{0, 1, 1}},
		"of several layers":       {"a = 1\n---\nb = 2\n---\nc = 3", "a c", "a=1 c=3", []int{1, 1, 1}},
		"linked directory":        {debian + "---\nopt/x = y", "/bin/bash", "/bin/bash=bash", []int{2, 1}},
		"alternatives":            {debian, "/bin/tool", "/bin/tool=tool", []int{2}},
		"link before its target":  {"a -> b\nb = 1", "a", "a=1", []int{2}},
		"link and its target":     {"a -> b\nb = 1", "a b", "a=1 b=1", []int{2}},
		"target in a lower layer": {"b = 1\n---\na -> b", "a", "a=1", []int{1, 1}},
		"target in a higher one":  {"a -> b\n---\nb = new", "a", "a=new", []int{1, 2}},
		"target that was changed": {"a -> b\nb = old\n---\nb = new", "a", "a=new", []int{1, 2}},
		"relative link":           {"opt/cni/v2/x = 1\nopt/cni/bin -> ./v2/../v2", "opt/cni/bin/x", "opt/cni/bin/x=1", []int{2}},
		"link that was replaced":  {"a -> b\nb = 1\n---\na = 2", "a", "a=2", []int{0, 1}},
		"directory was replaced":  {"d/x = old\n---\nd -> e\ne/x = new", "d/x", "d/x=new", []int{0, 2}},
		"link became a directory": {"d -> e\ne/x = old\n---\nd/x = new", "d/x", "d/x=new", []int{0, 1}},
		"hard link":               {"a = 1\nb => a", "b", "b=1", []int{2}},
		"hard link of a link":     {"a = 1\nb => a\nc => ./b", "c a", "a=1 c=1", []int{2}},
		"hard link is of its own": {"a = old\nb => a\n---\na = new", "b a", "a=new b=old", []int{2, 1}},
		"whiteout, then again":    {"a = old\n---\n.wh.a\n---\na = new", "a", "a=new", []int{0, 0, 1}},
		"whiteout beside it":      {"a = old\n---\na = new\n.wh.a", "a", "a=new", []int{0, 1}},
		"whiteout of another":     {"d/a = 1\nd/b = 2\n---\nd/.wh.b", "d/a", "d/a=1", []int{1, 1}},
		"opaque, own file":        {"d/a = old\n---\nd/.wh..wh..opq\nd/a = new", "d/a", "d/a=new", []int{0, 1}},
		"opaque, elsewhere":       {"d/a = 1\n---\ne/.wh..wh..opq", "d/a", "d/a=1", []int{1, 1}},
		"what aufs leaves":        {"a = 1\n---\n.wh..wh.plnk/1.2 = x\n.wh..wh.aufs = x", "a", "a=1", []int{1, 1}},
		"device elsewhere":        {"dev/null %\na = 1", "a", "a=1", []int{1}},
		"nothing wanted":          {"a = 1", "", "", []int{0}},
	} {
		var layers [][]byte
		for n, text := range strings.Split(c.layers, "---\n") {
			layers = append(layers, pack[n%len(pack)](t, tarText(t, text)))
		}
		h := hold(layers...)
		got, err := h.extract(t.Context(), strings.Fields(c.wanted)...)
		text := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(got), "map["), "]")
		if err != nil || strings.ReplaceAll(text, ":", "=") != c.want {
			t.Errorf("%s: %q, %v, want %q", name, text, err, c.want)
		}
		if diff := cmp.Diff(c.opened, h.opened); diff != "" {
			t.Errorf("%s: layers were opened otherwise:\n%s", name, diff)
		}
	}
}

// pack are the ways in which layers are compressed.
var pack = []func(testing.TB, []byte) []byte{gzipOf, zstdOf, func(_ testing.TB, plain []byte) []byte { return plain }}

func TestExtractMissing(t *testing.T) {
	for name, c := range map[string]struct{ layers, wanted, want string }{
		"nowhere":           {"a = 1\n---\nb = 2", "c", "no c in it"},
		"elsewhere":         {"usr/local/bin/kubelet = 1", "/usr/bin/kubelet a", "no usr/bin/kubelet, a in it; it holds usr/local/bin/kubelet"},
		"whiteout":          {"a = 1\n---\n.wh.a", "a", "no a in it"},
		"whiteout of it":    {"d/a = 1\n---\n.wh.d", "d/a", "no d/a in it"},
		"new directory":     {"d/a = 1\n---\n.wh.d\nd/b = 2", "d/a", "no d/a in it"},
		"opaque":            {"d/e/a = 1\n---\nd/.wh..wh..opq", "d/e/a", "no d/e/a in it"},
		"opaque root":       {"a = 1\n---\n.wh..wh..opq", "a", "no a in it"},
		"no directory":      {"d/a = 1\n---\nd -> e", "d/a", "no d/a (it leads to e/a) in it"},
		"of another name":   {"a = 1\nx/b = 2", "x/a", "no x/a in it; it holds a"},
		"target is missing": {"a -> /opt/b/../c", "a", "no a (it leads to opt/b/../c) in it"},
		"hard link to none": {"a => b", "a", "no a (it leads to b) in it"},
		"empty":             {"", "a", "no a in it"},
	} {
		var layers [][]byte
		for text := range strings.SplitSeq(c.layers, "---\n") {
			layers = append(layers, tarText(t, text))
		}
		got, err := hold(layers...).extract(t.Context(), strings.Fields(c.wanted)...)
		if e, ok := errors.AsType[*MissingError](err); !ok || e.Error() != c.want || len(got) > 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := hold().extract(t.Context(), "a"); err == nil {
		t.Error("an image without layers has a file")
	}
}

func TestExtractHostile(t *testing.T) {
	chain := "a0 = x\n"
	for n := range 50 {
		chain += fmt.Sprintf("a%d -> a%d\n", n+1, n)
	}
	deep := strings.Repeat("d/", maxDepth+1) + "x"
	for name, c := range map[string]struct{ layers, wanted, want string }{
		"climbs":             {"a = 1\n../../etc/passwd = 2", "a", `"../../etc/passwd": the name climbs`},
		"climbs inside":      {"x/../../a = 1", "a", "the name climbs"},
		"wanted climbs":      {"a = 1", "../a", "the name climbs"},
		"wanted is nothing":  {"a = 1", "/", "it is not the path of a file"},
		"wanted is whiteout": {"d/.wh.a = 1", "d/.wh.a", "it is not the path of a file"},
		"link escapes":       {"a -> ../../etc/shadow", "a", "a link leads out of the image"},
		"links escape":       {"d/a -> ../b\nb -> ../etc/shadow", "d/a", "a link leads out of the image"},
		"loop":               {"a -> b\nb -> a", "a", "more than 40 links"},
		"loop on the way":    {"d -> d/d", "d/a", "more than 40 links"},
		"chain":              {chain, "a50", "more than 40 links"},
		"loop of hard links": {"a => b\nb => a", "a", "more than 40 hard links"},
		"hard link to dir":   {"d/\na => d", "a", "which is no regular file"},
		"hard link escapes":  {"a => ../../etc/shadow", "a", "the name climbs"},
		"device":             {"dev/sda %", "dev/sda", "neither a regular file nor a link"},
		"directory":          {"d/\n", "d", "it is a directory"},
		"implied directory":  {"d/a = 1", "d", "it is a directory"},
		"file on the way":    {"d = 1", "d/a", `"d" on the way is a file`},
		"twice":              {"a = 1\na = 2", "a", "it is in the layer twice"},
		"file, then link":    {"a = 1\na -> b\nb = 2", "a", "it is in the layer twice"},
		"contradiction":      {"d/a = 1\nd -> e\ne/a = 2", "d/a", "contradicts itself"},
		"hides its parent":   {"d/a = 1\nd = 2", "d/a", `"d" on the way is a file`},
		"whiteout of parent": {"a = 1\nd/.wh...", "a", "a whiteout of nothing"},
		"whiteout of no one": {"a = 1\nd/.wh.", "a", "a whiteout of nothing"},
		"deep":               {"a = 1\n" + deep + " = 2", "a", "too long or too deep"},
		"link to long":       {"a -> " + strings.Repeat("x", maxName+1), "a", "a link to a name of 4097 bytes"},
	} {
		_, err := hold(tarText(t, c.layers)).extract(t.Context(), strings.Fields(c.wanted)...)
		if e, ok := errors.AsType[*ContentError](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v (%v)", name, err, e)
		}
	}
}

func TestExtractBounds(t *testing.T) {
	bomb := gzipOf(t, tarText(t, "a = "+strings.Repeat("0", 1<<20)))
	deep := gzipOf(t, tarText(t, strings.Repeat("d/", 101)+"x = 1"))
	layers := map[string][][]byte{"bytes": {bomb}, "entries": {bomb}, "names": {deep}, "links": {linked(t, "a"), linked(t, "b")}}
	for name, change := range map[string]func(*Image){
		"bytes":   func(im *Image) { im.MaxBytes = 1 << 19 },
		"entries": func(im *Image) { im.Layers, im.maxEntries = hold(bomb, bomb).Layers, 1 },
		"names":   func(im *Image) { im.maxEntries = 100 },
		"links":   func(*Image) {},
	} {
		h := hold(layers[name]...)
		change(&h.Image)
		_, err := h.extract(t.Context(), "a", "b")
		if e, ok := errors.AsType[*ContentError](err); !ok || !errors.Is(err, ErrBounds) {
			t.Errorf("%s: %v (%v)", name, err, e)
		}
	}
	h := hold(sparse(1 << 40))
	if _, err := h.extract(t.Context(), "big"); !errors.Is(err, ErrBounds) {
		t.Errorf("sparse: %v", err)
	}
}

// linked is a layer whose links alone are within the bounds, and not twice.
func linked(t *testing.T, name string) []byte {
	t.Helper()
	var text strings.Builder
	for n := range maxLinkBytes / 2 / maxName * 5 / 4 {
		fmt.Fprintf(&text, "%s%d -> %s\n", name, n, strings.Repeat("x", maxName-10))
	}
	return gzipOf(t, tarText(t, text.String()))
}

// sparse is a layer whose one file is a hole, in the format that PAX calls 1.0.
func sparse(size int64) []byte {
	var b bytes.Buffer
	record := func(key, value string) string {
		line := fmt.Sprintf(" %s=%s\n", key, value)
		for n := len(line); ; n++ {
			if text := fmt.Sprint(n) + line; len(text) == n {
				return text
			}
		}
	}
	pax := record("GNU.sparse.major", "1") + record("GNU.sparse.minor", "0") + record("GNU.sparse.name", "big") + record("GNU.sparse.realsize", fmt.Sprint(size))
	block := func(name string, flag byte, content string) {
		h := make([]byte, 512)
		copy(h, name)
		copy(h[100:], "0000644\x000000000\x000000000\x00")
		copy(h[124:], fmt.Sprintf("%011o\x0000000000000\x00        %c", len(content), flag))
		copy(h[257:], "ustar\x0000")
		sum := 0
		for _, c := range h {
			sum += int(c)
		}
		copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
		b.Write(h)
		b.WriteString(content)
		b.Write(make([]byte, (512-len(content)%512)%512))
	}
	block("pax", tar.TypeXHeader, pax)
	block("big", tar.TypeReg, "0\n"+strings.Repeat("\x00", 510))
	b.Write(make([]byte, 1024))
	return b.Bytes()
}

func TestExtractComparesLayers(t *testing.T) {
	good := gzipOf(t, tarText(t, "a = 1\nb = "+strings.Repeat("0123456789", 1000)))
	cut := errors.New("cut")
	for name, c := range map[string]struct {
		open func() io.Reader
		is   error
		as   any
	}{
		"changed":     {func() io.Reader { return bytes.NewReader(append(good[:len(good)-1:len(good)-1], 1)) }, nil, new(*DigestError)},
		"other layer": {func() io.Reader { return bytes.NewReader(bytes.Repeat([]byte("?"), len(good))) }, nil, new(*DigestError)},
		"shorter":     {func() io.Reader { return bytes.NewReader(good[:len(good)/2]) }, nil, new(*SizeError)},
		"longer":      {func() io.Reader { return bytes.NewReader(append(good[:len(good):len(good)], 0)) }, nil, new(*SizeError)},
		"cut":         {func() io.Reader { return io.MultiReader(bytes.NewReader(good[:30]), failing{cut}) }, cut, nil},
	} {
		h := hold(good)
		h.Open = func(context.Context, v1.Descriptor) (io.ReadCloser, error) { return io.NopCloser(c.open()), nil }
		_, err := h.extract(t.Context(), "a")
		if c.is != nil && !errors.Is(err, c.is) || c.as != nil && !errors.As(err, c.as) {
			t.Errorf("%s: %T %v", name, err, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestExtractStops(t *testing.T) {
	h, full, gone := hold(tarText(t, "a = 1")), errors.New("disk full"), errors.New("given up")
	if err := h.Extract(t.Context(), []string{"a"}, func([]string, *tar.Header, io.Reader) error { return full }); !errors.Is(err, full) {
		t.Errorf("put: %v", err)
	}
	// put may leave what it does not need.
	if err := h.Extract(t.Context(), []string{"a"}, func([]string, *tar.Header, io.Reader) error { return nil }); err != nil {
		t.Errorf("put that reads nothing: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := h.extract(ctx, "a"); !errors.Is(err, gone) {
		t.Errorf("context: %v", err)
	}
	h.Open = func(context.Context, v1.Descriptor) (io.ReadCloser, error) { return nil, full }
	if _, err := h.extract(t.Context(), "a"); !errors.Is(err, full) {
		t.Errorf("open: %v", err)
	}
	layer := zstdOf(t, tarText(t, "a = 1"))
	h = hold(layer, tarText(t, ""))
	h.Window = func(context.Context) (func(), error) { return nil, full }
	_, err := h.extract(t.Context(), "a")
	if _, layers := errors.AsType[*ContentError](err); layers || !errors.Is(err, full) {
		t.Errorf("window: %v", err)
	}
	held := 0
	h.Window = func(context.Context) (func(), error) { held++; return func() { held += 10 }, nil }
	if _, err := h.extract(t.Context(), "a"); err != nil || held != 11 {
		t.Errorf("window: %v, %d", err, held)
	}
	h.Layers[0].MediaType = "application/vnd.oci.image.layer.v1.tar+gzip+encrypted"
	if _, err := h.extract(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "it is encrypted") {
		t.Errorf("encrypted: %v", err)
	}
}
