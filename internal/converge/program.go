package converge

import (
	"fmt"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// fingerprint tells two versions of a downloaded file apart without reading it:
// programs are large and plan is to be quick.
func fingerprint(info *host.Info) string {
	return fmt.Sprintf("%d:%d", info.Size, info.ModTime.UnixNano())
}

// edited names the files of an artifact that are not what berth downloaded. A
// program of the image is the image's to judge.
func (p *planning) edited(a *desired.Artifact) (string, error) {
	var names []string
	for _, f := range a.Files {
		put := p.led.Entries[f.Path].Print
		info, err := lstat(p.h, f.Path)
		if err != nil {
			return "", err
		}
		if put != "" && info != nil && fingerprint(info) != put {
			names = append(names, f.Path)
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	return "not as downloaded: " + strings.Join(names, ", "), nil
}

// printed is the fingerprint of a download that is about to get its name.
func printed(h host.FS, q *put) (string, error) {
	if !q.prepared {
		return "", nil
	}
	info, err := lstat(h, host.TempName(q.path))
	if err != nil || info == nil {
		return "", err
	}
	return fingerprint(info), nil
}

// programModes repairs the attributes of programs in place: a download would be
// a costly chmod. Of the image's programs only those that can't run are touched.
func (p *planning) programModes(t *task, a *desired.Artifact) error {
	for _, f := range a.Files {
		info, err := lstat(p.h, f.Path)
		if err != nil {
			return err
		}
		if info == nil || !info.IsRegular() || !p.led.made(f.Path) && info.Mode&0o111 != 0 {
			continue
		}
		q := &put{kind: putAttributes, path: f.Path, attrs: host.Attributes{Mode: f.Mode.Perm()}, asked: askedOf(a)}
		if err := p.repairAttributes(t, q, info); err != nil {
			return err
		}
	}
	return nil
}

// repairAttributes plans a put of which mode or owner differ from what is there.
func (p *planning) repairAttributes(t *task, q *put, info *host.Info) error {
	reason := attributeDifference(info, q.attrs)
	if reason == "" {
		return nil
	}
	if err := p.mayPut(q, info); err != nil {
		return err
	}
	t.puts = append(t.puts, q)
	t.act(VerbUpdate, q.path+": "+reason+q.takenOver(), DisruptNone)
	return nil
}
