// Package pause lets repairs of drift rest for a while: for somebody on the machine
// by a file, for somebody in the cluster by an annotation of the Node.
package pause

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

const (
	// Path holds how long the machine has been up when the pause ends, in seconds: the
	// clock may be set meanwhile. It does not outlive a reboot.
	Path = paths.RunDir + "/agent-pause"
	// Annotation of the Node holds a time likewise.
	Annotation = "berth.dev/agent-pause-until"
	// Longest is how long a pause may be: one that is forgotten ends.
	Longest = 7 * 24 * time.Hour
)

// Set begins a pause of the machine, or ends it where d is 0. It returns the end.
func Set(h host.Host, d time.Duration) (time.Time, error) {
	if d == 0 {
		err := h.Remove(Path)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return time.Time{}, err
	}
	up, err := host.Uptime(h)
	if err != nil {
		return time.Time{}, fmt.Errorf("begin a pause: %w", err)
	}
	if _, err := host.MkdirAll(h, path.Dir(Path)); err != nil {
		return time.Time{}, fmt.Errorf("begin a pause: %w", err)
	}
	text := strconv.FormatFloat((up+d).Seconds(), 'f', 2, 64) + "\n"
	if err := host.WriteFile(h, Path, []byte(text), host.Attributes{Mode: 0o600}); err != nil {
		return time.Time{}, fmt.Errorf("begin a pause: %w", err)
	}
	return h.Now().Add(d), nil
}

// Until is when the pause ends; zero, or a time that is over, where there is none. n
// may be nil. What can't be read or lies too far ahead is no pause.
func Until(h host.Host, n *core.Node) time.Time {
	end := byFile(h)
	if n == nil {
		return end
	}
	if asked := byAnnotation(h, n); asked.After(end) {
		return asked
	}
	return end
}

func byFile(h host.Host) time.Time {
	text, err := h.ReadFile(Path)
	if err != nil {
		return time.Time{}
	}
	end, err := host.ParseSeconds(string(text))
	if err != nil {
		return time.Time{}
	}
	up, err := host.Uptime(h)
	if err != nil || end-up > Longest {
		return time.Time{}
	}
	return h.Now().Add(end - up)
}

func byAnnotation(h host.Host, n *core.Node) time.Time {
	t, err := parse(h, n.Annotations[Annotation])
	if err != nil {
		return time.Time{}
	}
	return t
}

// Refused is why the annotation of a Node is no pause; nil where there is none, or it is one.
func Refused(h host.Host, n *core.Node) error {
	text := n.Annotations[Annotation]
	if text == "" {
		return nil
	}
	_, err := parse(h, text)
	return err
}

func parse(h host.Host, text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, strings.TrimSpace(text))
	if err != nil {
		return t, fmt.Errorf("annotation %s is %q: it takes a time such as %s", Annotation, text, h.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}
	if t.After(h.Now().Add(Longest)) {
		return t, fmt.Errorf("annotation %s is %q: a pause is no longer than %d days", Annotation, text, Longest/(24*time.Hour))
	}
	return t, nil
}
