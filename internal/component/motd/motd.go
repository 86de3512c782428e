// Package motd is the message of the day: what a login shows.
package motd

import "github.com/berth-dev/berth/internal/desired"

// Path is the file that pam_motd and sshd show at a login (motd(5)).
const Path = "/etc/motd"

// Resources is the file with a message, or nothing where there is none: what the
// image shows stays then.
func Resources(message []byte) []desired.Resource {
	if len(message) == 0 {
		return nil
	}
	return []desired.Resource{&desired.File{
		Path: Path, Mode: 0o644, Life: desired.Managed, Content: desired.Text(string(message)),
	}}
}
