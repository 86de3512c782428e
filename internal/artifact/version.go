package artifact

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"io/fs"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

// Version says of which version a program is: "1.36.3", without v; "" where it
// can't be known. It is read from the Go build information in the file; only
// where that doesn't tell, the program is run with --version. Answers are kept in
// memory and on the machine for as long as the file stays the same.
func (f *Fetcher) Version(ctx context.Context, h host.Host, p string) (string, error) {
	p, err := follow(h, p)
	if err != nil {
		return "", err
	}
	key, err := fileKey(h, p)
	if err != nil {
		return "", err
	}
	if v, ok := f.versions.get(h, key); ok {
		return v, nil
	}
	v, err := builtVersion(h, p)
	if err != nil {
		return "", err
	}
	if v != "" {
		f.versions.remember(key, v)
		return v, nil
	}
	if v = spokenVersion(ctx, h, p); v != "" {
		f.versions.keep(h, key, v)
	}
	return v, nil
}

// maxLinks is how many links stand between a program's name and its file at most.
const maxLinks = 8

// follow finds the file behind a name: images link programs.
func follow(h host.FS, p string) (string, error) {
	for range maxLinks {
		info, err := h.Lstat(p)
		if err != nil {
			return "", fmt.Errorf("find program: %w", err)
		}
		if info.Mode.Type() != fs.ModeSymlink {
			return p, nil
		}
		target, err := h.Readlink(p)
		if err != nil {
			return "", fmt.Errorf("find program: %w", err)
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(p), target)
		}
		p = path.Clean(target)
	}
	return "", fmt.Errorf("find program: %s: too many links", p)
}

// projects are the modules whose version is the version of their programs, in
// the order in which one that builds on the other comes first.
var projects = []string{
	"k8s.io/kubernetes",
	"sigs.k8s.io/cri-tools",
	"github.com/containernetworking/plugins",
	"github.com/containerd/containerd/v2",
	"github.com/containerd/containerd",
	"github.com/opencontainers/runc",
}

// builtVersion reads the version from the file itself; "" if it does not tell.
func builtVersion(h host.FS, p string) (string, error) {
	file, err := h.Open(p)
	if err != nil {
		return "", fmt.Errorf("open program: %w", err)
	}
	defer file.Close()
	info, err := buildinfo.Read(file)
	if err != nil {
		return "", nil //nolint:nilerr // not a Go program: it is asked instead
	}
	return moduleVersion(info), nil
}

func moduleVersion(info *debug.BuildInfo) string {
	if slices.Contains(projects, info.Main.Path) {
		return release(info.Main.Version)
	}
	for _, project := range projects {
		for _, dep := range info.Deps {
			if dep.Path == project {
				return release(actual(dep).Version)
			}
		}
	}
	return release(info.Main.Version)
}

func actual(m *debug.Module) *debug.Module {
	if m.Replace != nil {
		return m.Replace
	}
	return m
}

var releaseForm = lazyregexp.New(`^v([0-9]+\.[0-9]+\.[0-9]+(?:-(?:alpha|beta|rc)\.?[0-9.]*)?)(?:\+[0-9A-Za-z.-]+)?$`)

// release is a module version as people say it; "" for a development version.
func release(v string) string {
	m := releaseForm().FindStringSubmatch(v)
	if m == nil || strings.HasPrefix(v, "v0.0.0") || strings.HasSuffix(v, "+dirty") {
		return ""
	}
	return m[1]
}

// askTimeout bounds a program that is asked for its version; cold, from a slow
// disk, that takes seconds.
const askTimeout = 30 * time.Second

// spokenVersion runs the program; "" if it can't be run or says nothing usable.
func spokenVersion(ctx context.Context, h host.Runner, p string) string {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	args := []string{"--version"}
	if path.Base(p) == "kubectl" {
		args = []string{"version", "--client"}
	}
	out, err := h.Run(ctx, host.Command{Path: p, Args: args})
	if err != nil {
		return ""
	}
	if v := parseSpoken(string(out.Stdout)); v != "" {
		return v
	}
	return parseSpoken(string(out.Stderr))
}

var spokenForm = lazyregexp.New(`(?:^|[\s:])v?([0-9]+\.[0-9]+\.[0-9]+(?:-(?:alpha|beta|rc)\.?[0-9.]*)?)(?:[-+~][0-9A-Za-z.+~-]+)?(?:$|[\s,])`)

// parseSpoken finds the first version in what a program prints:
// "Kubernetes v1.36.3", "containerd github.com/… v2.2.9 …", "runc version 1.4.0".
func parseSpoken(text string) string {
	m := spokenForm().FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1]
}
