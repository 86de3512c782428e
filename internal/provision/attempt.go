package provision

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
)

// attempt is the last run that ended on this machine.
type attempt struct {
	ended bool
	// sentinel is the file that says so, bootID the boot in which it ended, "" where
	// that is unknown.
	sentinel, bootID string
	document         report.Result
	// raw is the result as it stands on the disk; problem says why it can't be
	// used.
	raw     []byte
	problem error
}

// lastAttempt looks for a sentinel of this instance. One of another instance
// came with the image and says nothing about this machine.
func lastAttempt(h host.FS, instance string, imageBuild bool) (attempt, error) {
	for _, p := range slices.Backward(report.ResultFiles(imageBuild)) { // what had to go to memory is newer than what the disk keeps
		s, err := report.ReadSentinel(h, p.Sentinel)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return attempt{}, fmt.Errorf("read sentinel: %w", err)
		}
		if s.InstanceID != "" && instance != "" && s.InstanceID != instance {
			continue
		}
		return readAttempt(h, p, s), nil
	}
	return attempt{}, nil
}

func readAttempt(h host.FS, p report.ResultFile, s report.Sentinel) attempt {
	a := attempt{ended: true, sentinel: p.Sentinel, bootID: s.BootID}
	a.raw, a.problem = h.ReadFile(p.Result)
	if a.problem == nil {
		a.document, a.problem = report.Decode(a.raw)
	}
	if a.problem == nil {
		_, a.problem = strconv.ParseUint(a.document.ExitCode, 10, 8)
	}
	return a
}

// exitCode is the recorded one; 0 where there is no result to read, as with a
// sentinel that somebody put there to keep a machine from being provisioned.
func (a attempt) exitCode() int {
	if a.problem != nil {
		return exitcode.OK
	}
	return exitCode(a.document)
}

// exitCode is a result's; 0 where it has none.
func exitCode(d report.Result) int {
	n, err := strconv.Atoi(d.ExitCode)
	if err != nil {
		return exitcode.OK
	}
	return n
}

// interrupted says that the run was stopped from outside: it neither succeeded
// nor failed, and goes on at the next boot.
func (a attempt) interrupted() bool {
	c := a.exitCode()
	return c == exitcode.Interrupted || c == exitcode.Killed
}

// forget makes room for a new run: the sentinels go first, so that nobody takes
// the old result for the new one, then the result gets another name.
func forget(h host.Host, imageBuild bool) error {
	for _, p := range append(report.ResultFiles(false), report.ResultFiles(imageBuild)...) { // an image that is prepared anew is no node
		if err := remove(h, p.Sentinel); err != nil {
			return fmt.Errorf("remove sentinel: %w", err)
		}
	}
	run := report.ResultFiles(imageBuild)[1]
	if err := remove(h, run.Result); err != nil {
		return fmt.Errorf("remove result: %w", err)
	}
	return archive(h)
}

func remove(h host.FS, p string) error {
	err := h.Remove(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return h.SyncDir(path.Dir(p))
}
