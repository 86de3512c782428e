package converge

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// stamp says with what a unit was started: it makes a restart that is owed
// observable.
type stamp struct {
	InvocationID string `json:"invocationID"`
	// Hash covers definition, drop-ins and trigger files.
	Hash string `json:"hash"`
}

func stampPath(unit string) string { return stampDir + "/" + unit }

func readStamp(h host.FS, unit string) (stamp, error) {
	var s stamp
	data, ok, err := readFile(h, stampPath(unit))
	if err != nil || !ok {
		return s, err
	}
	if json.Unmarshal(data, &s) != nil {
		return stamp{}, nil
	}
	return s, nil
}

func writeStamp(h host.FS, unit string, s stamp) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := host.WriteFile(h, stampPath(unit), data, host.Attributes{Mode: 0o600}); err != nil {
		return fmt.Errorf("write stamp of %s: %w", unit, err)
	}
	return nil
}

// maxHashed bounds the programs that are compared by content. Larger ones are
// compared by size, inode and time of modification: a plan is to be quick.
const maxHashed = 1 << 20

// input is one thing a unit was started with.
type input struct{ path, token string }

func hashInputs(in []input) string {
	slices.SortFunc(in, func(a, b input) int { return cmp.Compare(a.path, b.path) })
	sum := sha256.New()
	for _, i := range in {
		fmt.Fprintf(sum, "%s\x00%s\x00", i.path, i.token)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// absent is the token of a path at which there is nothing.
const absent = "absent"

// token identifies what is at a path now.
func token(h host.FS, path string) (string, error) {
	info, err := lstat(h, path)
	if err != nil {
		return "", err
	}
	switch {
	case info == nil:
		return absent, nil
	case info.Mode&fs.ModeSymlink != 0:
		target, err := h.Readlink(path)
		return "link:" + target, err
	}
	return contentSum(h, path)
}

func contentSum(h host.FS, path string) (string, error) {
	f, err := h.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// inputToken is token, but quick for the programs of the state.
func (p *planning) inputToken(path string) (string, error) {
	info, err := lstat(p.h, path)
	if err == nil && info != nil && info.IsRegular() && info.Size > maxHashed && p.isProgram(path) {
		return fmt.Sprintf("stat:%d:%d:%d", info.Size, info.Inode, info.ModTime.UnixNano()), nil
	}
	return token(p.h, path)
}

func (p *planning) isProgram(path string) bool {
	return slices.ContainsFunc(p.st.Resources, func(r desired.Resource) bool {
		a, ok := r.(*desired.Artifact)
		return ok && slices.ContainsFunc(a.Files, func(f desired.ArtifactFile) bool { return f.Path == path })
	})
}

// dropIns lists the drop-ins that are there.
func dropIns(h host.FS, unit string) ([]string, error) {
	var out []string
	for _, dir := range definitionDirs {
		d := dir + "/" + unit + ".d"
		names, err := h.ReadDir(d)
		if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			if strings.HasSuffix(n, ".conf") {
				out = append(out, d+"/"+n)
			}
		}
	}
	return out, nil
}

// newest is the latest change of any path.
func newest(h host.FS, paths []string) (string, time.Time, error) {
	var at time.Time
	var which string
	for _, p := range paths {
		info, err := lstat(h, p)
		if err != nil {
			return "", at, err
		}
		if info != nil && info.ChangeTime.After(at) {
			at, which = info.ChangeTime, p
		}
	}
	return which, at, nil
}
