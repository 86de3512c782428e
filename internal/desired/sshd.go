package desired

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/lazyregexp"
)

// SSHD is what the SSH server must have in force. The lines that say so are a File
// or a Block; this proves them: what is about to be written is read by the server
// first, and what counts in the end is compared in each run.
type SSHD struct {
	Base
	// Program is the server's.
	Program string `json:"program"`
	// Path is the file with the lines.
	Path string `json:"path"`
	// Settings are keywords in lower case, with their values, as sshd -T prints them.
	Settings map[string]string `json:"settings"`
	// Units are services that reload what they run with when the lines go again.
	Units []string `json:"units,omitempty"`
}

// SSHDID names the settings by the file with the lines.
func SSHDID(path string) ID { return ID("sshd:" + path) }

// ID implements Resource.
func (s *SSHD) ID() ID { return SSHDID(s.Path) }

// Kind implements Resource.
func (s *SSHD) Kind() string { return "sshd" }

var keyword = lazyregexp.New(`^[a-z0-9]+$`)

// Validate implements Resource.
func (s *SSHD) Validate() error {
	if len(s.Settings) == 0 {
		return errors.New("an SSH server without settings proves nothing")
	}
	for _, k := range slices.Sorted(maps.Keys(s.Settings)) {
		if !keyword().MatchString(k) || s.Settings[k] == "" || strings.ContainsAny(s.Settings[k], "\n\x00") {
			return fmt.Errorf("%q is not a setting of sshd", k)
		}
	}
	return errors.Join(cleanAbs(s.Program), cleanAbs(s.Path))
}
