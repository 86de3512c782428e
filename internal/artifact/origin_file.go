package artifact

import (
	"context"
	"fmt"
	"io"

	"github.com/berth-dev/berth/internal/host"
)

// disk is a blob in a file of the machine.
type disk struct {
	h    host.FS
	path string
}

func (d disk) open(_ context.Context, offset int64, _ string) (*flow, error) {
	info, err := d.h.Lstat(d.path)
	if err != nil {
		return nil, err
	}
	f, err := d.h.Open(d.path)
	if err != nil {
		return nil, err
	}
	tag := fmt.Sprintf("%d %d", info.Inode, info.ChangeTime.UnixNano())
	return &flow{body: section(f, f, offset, info.Size-offset), start: offset, size: info.Size, tag: tag}, nil
}

// section is a part of a file that closes another.
func section(r io.ReaderAt, c io.Closer, offset, n int64) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(r, offset, n), c}
}
