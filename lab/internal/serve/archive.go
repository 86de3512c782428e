package serve

import (
	"archive/tar"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// Entry is one regular file of an archive: Name inside it, and its bytes from
// Source, or Data if Source is empty.
type Entry struct {
	Name   string
	Source string
	Data   []byte
	Mode   fs.FileMode // 0 means 0755
}

// WriteTarGz writes an archive to out, compressed at a level of package gzip, and returns
// its SHA-256 in hex. The same entries give the same bytes: sorted, owned by root, without
// times.
func WriteTarGz(out string, level int, entries ...Entry) (digest string, err error) {
	f, err := os.Create(out)
	if err != nil {
		return "", fmt.Errorf("create archive: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	zip, err := gzip.NewWriterLevel(io.MultiWriter(f, sum), level)
	if err != nil {
		return "", fmt.Errorf("create archive: %w", err)
	}
	if err := errors.Join(writeTar(zip, entries), zip.Close()); err != nil {
		return "", fmt.Errorf("write archive %s: %w", filepath.Base(out), err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// writeTar puts every directory before what is in it, as upstream's archives
// do.
func writeTar(w io.Writer, entries []Entry) error {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	tw := tar.NewWriter(w)
	made := map[string]bool{".": true, "/": true}
	for _, e := range sorted {
		if err := errors.Join(writeDirs(tw, path.Dir(e.Name), made), writeEntry(tw, e)); err != nil {
			return err
		}
	}
	return tw.Close()
}

func writeDirs(tw *tar.Writer, dir string, made map[string]bool) error {
	if made[dir] {
		return nil
	}
	made[dir] = true
	if err := writeDirs(tw, path.Dir(dir), made); err != nil {
		return err
	}
	return tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: epoch})
}

var epoch = time.Unix(0, 0)

func writeEntry(tw *tar.Writer, e Entry) error {
	body, size, err := e.open()
	if err != nil {
		return err
	}
	defer body.Close()
	mode := int64(cmp.Or(e.Mode, 0o755).Perm())
	if err := tw.WriteHeader(&tar.Header{Name: e.Name, Size: size, Mode: mode, ModTime: epoch}); err != nil {
		return err
	}
	_, err = io.Copy(tw, body)
	return err
}

func (e Entry) open() (io.ReadCloser, int64, error) {
	if e.Source == "" {
		return io.NopCloser(strings.NewReader(string(e.Data))), int64(len(e.Data)), nil
	}
	f, err := os.Open(e.Source)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}
