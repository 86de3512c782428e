package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/unitname"
)

// The published paths.
const (
	BaseDir        = "/var/lib/gardener-node-agent"
	CredentialsDir = BaseDir + "/credentials"
	BootstrapToken = CredentialsDir + "/bootstrap-token"
	Kubeconfig     = CredentialsDir + "/kubeconfig"
	MachineName    = BaseDir + "/machine-name"
	Zone           = BaseDir + "/zone"
	// FormerDocument is what the published agent was asked for last, FormerChanges how far
	// it came with what it was asked for then.
	FormerDocument = BaseDir + "/last-applied-osc.yaml"
	FormerChanges  = BaseDir + "/last-computed-osc-changes.yaml"
	Unit           = unitname.Agent
	InitUnit       = unitname.AgentInit
	Binary         = "/opt/bin/gardener-node-agent"
)

var fileName = regexp.MustCompile(`^config-(.+)\.yaml$`)

// IsFile says whether a name in the directory of the configuration is that of one.
func IsFile(name string) bool { return fileName.MatchString(name) }

// Find returns the configuration of a version in a directory, else that of the
// newest version there: files of other versions are left behind by updates and by
// init data that runs again at each boot.
func Find(h host.FS, dir, own string) (string, error) {
	names, err := h.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", missing(dir, fmt.Errorf("look for the agent's configuration: %w", err))
	}
	if err != nil {
		return "", fmt.Errorf("look for the agent's configuration: %w", err)
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !IsFile(n) })
	if len(names) == 0 {
		return "", missing(dir, fmt.Errorf("look for the agent's configuration: %s holds no config-*.yaml", dir))
	}
	if name := "config-" + own + ".yaml"; slices.Contains(names, name) {
		return path.Join(dir, name), nil
	}
	return path.Join(dir, slices.MaxFunc(names, older)), nil
}

func missing(dir string, err error) error {
	return &exitcode.Error{Err: err,
		Remedy: "Write the published configuration to " + dir + "/config-VERSION.yaml, or name the directory that holds it with --config-dir."}
}

// older orders file names by the version in them; one without is older than all.
func older(a, b string) int {
	va, vb := versionOf(a), versionOf(b)
	switch {
	case va == nil && vb == nil:
		return strings.Compare(a, b)
	case va == nil:
		return -1
	case vb == nil:
		return 1
	case va.LessThan(vb):
		return -1
	case vb.LessThan(va):
		return 1
	}
	return strings.Compare(a, b)
}

func versionOf(name string) *version.Version {
	v, err := version.ParseSemantic(fileName.FindStringSubmatch(name)[1])
	if err != nil {
		return nil
	}
	return v
}

// Read reads the published configuration, sets its defaults and validates it. notes
// are what was tolerated. An error that is not the machine's is an *Error.
func Read(h host.FS, file string) (c *NodeAgent, notes []string, err error) {
	text, err := h.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read the agent's configuration: %w", err)
	}
	return Parse(file, text)
}

// Parse is Read of a text. Unknown fields are tolerated, as by the published reader.
func Parse(file string, text []byte) (c *NodeAgent, notes []string, err error) {
	c = &NodeAgent{}
	if err := yaml.Unmarshal(text, c); err != nil {
		return nil, nil, unreadable(file, err)
	}
	if err := yaml.UnmarshalStrict(text, &NodeAgent{}); err != nil {
		notes = append(notes, strings.TrimPrefix(rootless(err).Error(), "json: "))
	}
	c.complete()
	if errs := c.validate(); len(errs) > 0 {
		return nil, nil, &Error{file, errs}
	}
	return c, notes, nil
}

// rootless is the innermost error.
func rootless(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}
