package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// Sentinel is the content of provision.complete: an attempt has ended, with
// success or not, on the machine with this id. The published writer leaves the
// file empty.
type Sentinel struct {
	InstanceID string `json:"instanceID,omitempty"`
	ExitCode   string `json:"exitCode,omitempty"`
	Time       string `json:"time,omitempty"`
	// BootID is the boot in which it ended.
	BootID string `json:"bootID,omitempty"`
}

// ReadSentinel reads a sentinel; one without content is the zero Sentinel.
func ReadSentinel(h host.FS, p string) (Sentinel, error) {
	b, err := h.ReadFile(p)
	if err != nil {
		return Sentinel{}, err
	}
	var s Sentinel
	if err := json.Unmarshal(b, &s); err != nil {
		return Sentinel{}, nil //nolint:nilerr // any content means: an attempt has ended
	}
	return s, nil
}

// ResultFile is a result and the sentinel that says that it is there.
type ResultFile struct{ Result, Sentinel string }

// ResultFiles are where a result may stand, the usual one first.
func ResultFiles(imageBuild bool) []ResultFile {
	s := SentinelPath
	if imageBuild {
		s = ImageBuildPath
	}
	return []ResultFile{
		{ResultPath, s},
		{path.Join(paths.RunDir, path.Base(ResultPath)), path.Join(paths.RunDir, path.Base(s))},
	}
}

// WriteResult writes provision.json and, once it is durable, the sentinel; both
// whole or absent. Where the disk refuses either, both go to RunDir, and the
// error of the disk is returned beside; where that fails too, to the console.
func WriteResult(ctx context.Context, h host.Host, d Result, imageBuild bool) error {
	b, err := Encode(d)
	if err != nil {
		return fmt.Errorf("print result: %w", err)
	}
	s := Sentinel{ExitCode: d.ExitCode, Time: SystemdTime(h.Now()), BootID: BootID(h)}
	if d.Berth != nil {
		s.InstanceID = d.Berth.InstanceID
	}
	mark, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("print sentinel: %w", err)
	}
	var errs []error
	for _, p := range ResultFiles(imageBuild) {
		err := writePair(h, p, b, append(mark, '\n'))
		if err == nil {
			break
		}
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		Console(h, string(bytes.TrimSpace(b)))
	}
	return errors.Join(errs...)
}

func writePair(h host.Host, p ResultFile, result, mark []byte) error {
	if err := writeInto(h, p.Result, result); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	if err := writeInto(h, p.Sentinel, mark); err != nil {
		return fmt.Errorf("write sentinel: %w", err)
	}
	return nil
}

func writeInto(h host.FS, p string, b []byte) error {
	if _, err := host.MkdirAll(h, path.Dir(p)); err != nil {
		return err
	}
	return host.WriteFile(h, p, b, host.Attributes{Mode: 0o600})
}

// kmsgLine is how much the kernel's log takes in one write, with room to spare.
const kmsgLine = 900

// The levels of records of the kernel's log, facility user: one that it shows on
// the console, too, and one that it keeps to itself.
const (
	kmsgShown = "<11>"
	kmsgKept  = "<15>"
)

// Console says a line where it is seen without a disk: on the console and in
// the kernel's log, each in one write. It can fail, and nothing is left to be
// done about it.
func Console(h host.FS, line string) {
	line = "berth: " + line
	level := kmsgKept // shown, it would come into the middle of the line on the console
	if h.WriteValue("/dev/console", []byte(line+"\n")) != nil {
		level = kmsgShown
	}
	// Without its line break a record stays open, and unseen, until the next.
	_ = h.WriteValue("/dev/kmsg", []byte(level+line[:min(len(line), kmsgLine)]+"\n"))
}
