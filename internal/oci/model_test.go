package oci

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
)

// tree is a file system as a runtime would make it of the layers: path to
// "=content", "->target" or "/".
type tree map[string]string

// apply unpacks a layer, whiteouts first, for they are about what lies below.
func (f tree) apply(layer []string) {
	for _, line := range layer {
		dir, base := path.Split(line)
		if base == ".wh..wh..opq" {
			f.clear(strings.TrimSuffix(dir, "/"), false)
		} else if hidden, ok := strings.CutPrefix(base, whiteout); ok {
			f.clear(dir+hidden, true)
		}
	}
	below := maps.Clone(f)
	for _, line := range layer {
		if strings.Contains(line, whiteout) {
			f.parents(path.Dir(line))
			continue
		}
		h, content := entryOf(line)
		name := strings.TrimSuffix(h.Name, "/")
		f.parents(path.Dir(name))
		switch h.Typeflag {
		case tar.TypeDir:
			f.set(name, "/")
		case tar.TypeSymlink:
			f.set(name, "->"+h.Linkname)
		case tar.TypeLink:
			f.set(name, f.inode(layer, below, h.Linkname))
		default:
			f.set(name, "="+content)
		}
	}
}

// inode is the content of a hard link's target: in its own layer, wherever it
// stands there, or below.
func (f tree) inode(layer []string, below tree, name string) string {
	for _, line := range layer {
		if h, content := entryOf(line); h.Name == name {
			return "=" + content
		}
	}
	return below[name]
}

func (f tree) set(name, what string) {
	if what != "/" {
		f.clear(name, true)
	}
	f[name] = what
}

func (f tree) parents(dir string) {
	for ; dir != "." && dir != ""; dir = path.Dir(dir) {
		if f[dir] != "/" {
			f[dir] = "/"
		}
	}
}

func (f tree) clear(name string, self bool) {
	for p := range f {
		if strings.HasPrefix(p, name+"/") || name == "" || self && p == name {
			delete(f, p)
		}
	}
}

// open follows a path; ok is false where it leads to no file.
func (f tree) open(name string) (content string, ok bool) {
	at, rest := "", strings.Split(name, "/")
	for range 1000 {
		if len(rest) == 0 {
			return "", false
		}
		part := rest[0]
		rest = rest[1:]
		if part == ".." {
			if at == "" {
				return "", false
			}
			at = parent(at)
			continue
		}
		next := join(at, part)
		what := f[next]
		switch {
		case part == "" || what == "/":
			at = next
		case strings.HasPrefix(what, "->"):
			target := what[2:]
			if strings.HasPrefix(target, "/") {
				at = ""
			}
			rest = append(strings.Split(strings.TrimPrefix(target, "/"), "/"), rest...)
		case strings.HasPrefix(what, "=") && len(rest) == 0:
			return what[1:], true
		default:
			return "", false
		}
	}
	return "", false
}

// someLayer makes a layer that does not contradict itself.
func someLayer(rnd *rand.Rand) []string {
	var lines []string
	kinds := map[string]byte{}
	for range 1 + rnd.IntN(8) {
		name := somePath(rnd)
		if _, ok := kinds[name]; ok || !fits(kinds, name) {
			continue
		}
		kind := "=->/wo"[rnd.IntN(6)]
		line := name + " = " + fmt.Sprint(rnd.IntN(1e6))
		switch kind {
		case '>':
			line = name + " -> " + []string{"/", "", "../"}[rnd.IntN(3)] + somePath(rnd)
		case '/':
			line = name + "/"
		case 'w', 'o':
			dir, base := path.Split(name)
			line = dir + whiteout + base
			if kind == 'o' {
				line = name + "/.wh..wh..opq"
				kind = '/'
			}
		}
		kinds[name] = kind
		lines = append(lines, line)
	}
	return hardLink(rnd, lines)
}

func hardLink(rnd *rand.Rand, lines []string) []string {
	for _, line := range lines {
		if name, _, ok := strings.Cut(line, " = "); ok && rnd.IntN(3) == 0 {
			return append(lines, "h => "+name)
		}
	}
	return lines
}

// fits says that no parent of the name is anything but a directory in this
// layer, and that the name is no parent.
func fits(kinds map[string]byte, name string) bool {
	for other, kind := range kinds {
		if strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/") && kind != '/' {
			return false
		}
	}
	return true
}

func somePath(rnd *rand.Rand) string {
	parts := make([]string, 1+rnd.IntN(3))
	for i := range parts {
		parts[i] = string("abc"[rnd.IntN(3)])
	}
	return strings.Join(parts, "/")
}

// TestExtractAgainstModel compares with what unpacking all layers gives.
func TestExtractAgainstModel(t *testing.T) {
	found := 0
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		f, layers, text := tree{}, [][]byte(nil), ""
		for range 1 + rnd.IntN(4) {
			lines := someLayer(rnd)
			f.apply(lines)
			layers = append(layers, tarText(t, strings.Join(lines, "\n")))
			text += strings.Join(lines, "\n") + "\n---\n"
		}
		h := hold(layers...)
		for _, wanted := range []string{somePath(rnd), "h"} {
			want, ok := f.open(wanted)
			got, err := h.extract(t.Context(), wanted)
			if ok != (err == nil) || ok && got[wanted] != want {
				t.Fatalf("seed %d: %s is %q (%t), got %v, %v in\n%s", seed, wanted, want, ok, got, err, text)
			}
			if ok {
				found++
			}
		}
	}
	if found < 300 {
		t.Errorf("only %d files were there", found)
	}
}

func FuzzExtract(f *testing.F) {
	for _, text := range []string{debian, "a -> b\nb => c\nc = 1", ".wh.a\nd/.wh..wh..opq", "../x = 1", "a -> a"} {
		f.Add(tarText(f, text), gzipOf(f, tarText(f, "bin/tool -> /a\na = 1")), "bin/tool")
		f.Add(zstdOf(f, tarText(f, text)), []byte(nil), "/a")
	}
	f.Add(sparse(1<<40), []byte{0x50, 0x2a, 0x4d, 0x18}, "big")
	f.Fuzz(func(t *testing.T, lower, upper []byte, wanted string) {
		h := hold(lower, upper)
		h.MaxBytes, h.maxEntries = 1<<20, 1000
		puts := 0
		err := h.Extract(context.Background(), []string{wanted}, func(paths []string, header *tar.Header, in io.Reader) error {
			puts++
			n, err := io.Copy(io.Discard, in)
			if len(paths) != 1 || paths[0] != wanted || n > h.MaxBytes || err == nil && n != header.Size {
				t.Errorf("%q was put with %d of %d bytes (%v)", paths, n, header.Size, err)
			}
			return err
		})
		if err == nil && puts != 1 {
			t.Errorf("%q was put %d times", wanted, puts)
		}
		for _, n := range h.opened {
			if n > 2 && string(lower) != string(upper) {
				t.Errorf("layers were opened %v times", h.opened)
			}
		}
		_, missing := errors.AsType[*MissingError](err)
		if _, refused := errors.AsType[*ContentError](err); err != nil && !missing && !refused {
			t.Errorf("error is %T: %v", err, err)
		}
	})
}
