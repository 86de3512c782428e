package desired

import (
	"errors"
	"strings"
)

// Sysfs is the value in force of one attribute of the kernel that is a choice, as in
// "always [madvise] never". What sets it at boot is a File.
type Sysfs struct {
	Base
	// Path is below /sys.
	Path  string `json:"path"`
	Value string `json:"value"`
}

// SysfsID names an attribute by its path.
func SysfsID(path string) ID { return ID("sysfs:" + path) }

// ID implements Resource.
func (s *Sysfs) ID() ID { return SysfsID(s.Path) }

// Kind implements Resource.
func (s *Sysfs) Kind() string { return "sysfs" }

// Validate implements Resource.
func (s *Sysfs) Validate() error {
	switch {
	case !strings.HasPrefix(s.Path, "/sys/"):
		return errors.New("an attribute of the kernel is below /sys")
	case s.Value == "" || strings.ContainsAny(s.Value, " \t\n[]"):
		return errors.New("the value of an attribute is one word")
	}
	return cleanAbs(s.Path)
}
