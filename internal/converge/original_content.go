package converge

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"golang.org/x/sync/singleflight"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// keeping stores originals, several at once.
type keeping struct{ contents singleflight.Group }

// content stores what a put replaces, once where several held the same, and
// returns its sha256.
func (k *keeping) content(h host.FS, q *put) (string, error) {
	sum, err := contentSum(h, q.path)
	if err != nil {
		return "", err
	}
	_, err, _ = k.contents.Do(sum, func() (any, error) {
		have, err := contentSum(h, contentName(sum))
		if err == nil && have == sum || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err := keepContent(h, q, sum); err != nil {
			return nil, err
		}
		return nil, h.SyncDir(originalsDir)
	})
	return sum, err
}

// keepContent keeps a program that a download replaces under a second name: it
// is large, and nobody writes into a program. Of any other file it keeps a copy,
// since whoever has it open may write on.
func keepContent(h host.FS, q *put, sum string) error {
	to := contentName(sum)
	if q.prepared && q.seen.Links == 1 {
		if err := h.SyncFile(q.path); err != nil {
			return err
		}
		if err := removeIfThere(h, to); err != nil {
			return err
		}
		if err := h.Link(q.path, to); !errors.Is(err, syscall.EXDEV) {
			return err
		}
	}
	if err := host.PrepareFunc(h, to, host.Attributes{Mode: 0o600}, copyOf(h, q.path, sum)); err != nil {
		return err
	}
	return host.Commit(h, to)
}

// maxHeld bounds the content of a file that is held in memory, in bytes.
const maxHeld = 1 << 20

// fillFrom makes a put one of stored content.
func (p *put) fillFrom(h host.FS, sum string) error {
	name := contentName(sum)
	info, err := h.Lstat(name)
	if err != nil {
		return err
	}
	if info.Size > maxHeld {
		p.stored = sum
		return nil
	}
	data, err := h.ReadFile(name)
	p.content = secretIfNarrow(data, p.attrs.Mode)
	return err
}

// copyOf writes a file that has to have this sum.
func copyOf(h host.FS, from, sum string) func(host.File) error {
	return func(to host.File) error {
		r, err := h.Open(from)
		if err != nil {
			return err
		}
		defer r.Close()
		hash := sha256.New()
		if _, err := io.Copy(io.MultiWriter(to, hash), r); err != nil {
			return err
		}
		if hex.EncodeToString(hash.Sum(nil)) != sum {
			return fmt.Errorf("%s: %w", from, ErrChanged)
		}
		return nil
	}
}

// secretIfNarrow treats content that others may not read as secret, so that no
// plan shows it.
func secretIfNarrow(data []byte, mode fs.FileMode) desired.Content {
	if mode&0o077 == 0 {
		return desired.SecretBytes(data)
	}
	return desired.Bytes(data)
}
