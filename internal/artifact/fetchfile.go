package artifact

import (
	"context"
	"path"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// FetchFile brings an artifact that is a single file to its path, whole or not at all. The
// errors are those of Stage, or the file system's own.
func (f *Fetcher) FetchFile(ctx context.Context, h host.Host, a *desired.Artifact) error {
	if _, err := f.Stage(ctx, h, a); err != nil {
		return err
	}
	to := a.Files[0].Path
	if err := h.Rename(host.TempName(to), to); err != nil {
		return err
	}
	return h.SyncDir(path.Dir(to))
}
