package provision

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
)

// keptResults is how many results of earlier runs stay.
const keptResults = 5

// An archived result is provision.<UTC time>.json beside the present one.
const (
	archivePrefix = "provision."
	archiveTime   = "20060102T150405.000000000Z"
	archiveSuffix = ".json"
)

// archive gives the old result another name.
func archive(h host.Host) error {
	to := path.Join(report.AKSLogDir, archivePrefix+h.Now().UTC().Format(archiveTime)+archiveSuffix)
	err := h.Rename(report.ResultPath, to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("archive result: %w", err)
	}
	return h.SyncDir(report.AKSLogDir)
}

// isArchive says whether a name is one that archive gives.
func isArchive(name string) bool {
	written, ok := strings.CutPrefix(name, archivePrefix)
	if !ok {
		return false
	}
	written, ok = strings.CutSuffix(written, archiveSuffix)
	if !ok {
		return false
	}
	_, err := time.Parse(archiveTime, written)
	return err == nil
}

// prune removes all archived results but the newest. Names in order are times in
// order.
func prune(h host.FS) error {
	names, err := h.ReadDir(report.AKSLogDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove old results: %w", err)
	}
	var archived []string
	for _, n := range names {
		if isArchive(n) {
			archived = append(archived, n)
		}
	}
	var errs []error
	for len(archived) > keptResults {
		errs = append(errs, remove(h, path.Join(report.AKSLogDir, archived[0])))
		archived = archived[1:]
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove old results: %w", err)
	}
	return nil
}
