package desired

import (
	"errors"
	"fmt"

	"github.com/berth-dev/berth/internal/lazyregexp"
)

// Module is a kernel module's function: loaded, or built in. Evidence is any of
// the paths; none present means that the module must be loaded.
type Module struct {
	Base
	Name     string   `json:"name"`
	Evidence []string `json:"evidence"`
	// Filesystem is a type whose line in /proc/filesystems is evidence too: a
	// container does not see /sys/module.
	Filesystem string `json:"filesystem,omitempty"`
}

// ModuleID names a kernel module.
func ModuleID(name string) ID { return ID("module:" + name) }

// ID implements Resource.
func (m *Module) ID() ID { return ModuleID(m.Name) }

// Kind implements Resource.
func (m *Module) Kind() string { return "module" }

var moduleName = lazyregexp.New(`^[a-z0-9_-]+$`)

// Validate implements Resource.
func (m *Module) Validate() error {
	if !moduleName().MatchString(m.Name) {
		return fmt.Errorf("%q is not a module name", m.Name)
	}
	if len(m.Evidence) == 0 {
		return errors.New("a module needs evidence that its function is there")
	}
	return nil
}

// Sysctl is the live value of one kernel parameter; the line that sets it at
// boot is a File. Values compare after normalising white space.
type Sysctl struct {
	Base
	// Key is in dotted form: net.ipv4.ip_forward.
	Key   string `json:"key"`
	Value string `json:"value"`
	// KubeletWrites: kubelet sets this key too; a difference is reported, not
	// fought.
	KubeletWrites bool `json:"kubeletWrites,omitempty"`
	// Optional: a kernel that does not have this key (an older one, or the
	// network namespace of a container) is reported, not a failure.
	Optional bool `json:"optional,omitempty"`
}

// SysctlID names a kernel parameter.
func SysctlID(key string) ID { return ID("sysctl:" + key) }

// ID implements Resource.
func (s *Sysctl) ID() ID { return SysctlID(s.Key) }

// Kind implements Resource.
func (s *Sysctl) Kind() string { return "sysctl" }

var sysctlKey = lazyregexp.New(`^[a-z0-9_-]+(\.[A-Za-z0-9_*/-]+)+$`)

// Validate implements Resource.
func (s *Sysctl) Validate() error {
	if !sysctlKey().MatchString(s.Key) {
		return fmt.Errorf("%q is not a kernel parameter", s.Key)
	}
	if s.Value == "" {
		return errors.New("a kernel parameter needs a value")
	}
	return nil
}
