package machine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

// parseMountinfo reads the lines of /proc/self/mountinfo (proc_pid_mountinfo(5)):
//
//	36 35 98:0 /root /target rw,noatime master:1 - ext4 /dev/sda1 rw,errors=continue
func parseMountinfo(text string) ([]host.Mount, error) {
	var all []host.Mount
	for line := range strings.Lines(text) {
		m, ok := parseMount(strings.TrimSuffix(line, "\n"))
		if !ok {
			return nil, fmt.Errorf("read mountinfo: unknown form of line %d: %q", len(all)+1, line)
		}
		all = append(all, m)
	}
	return all, nil
}

// fixedFields come before the optional ones, which end with a dash.
const fixedFields = 6

func parseMount(line string) (host.Mount, bool) {
	f := strings.Split(line, " ")
	if len(f) < fixedFields {
		return host.Mount{}, false
	}
	dash := slices.Index(f[fixedFields:], "-")
	if dash < 0 || len(f) != fixedFields+dash+4 {
		return host.Mount{}, false
	}
	fs := f[fixedFields+dash+1:]
	return host.Mount{
		Source: unescape(fs[1]), Target: unescape(f[4]), Type: unescape(fs[0]), Options: joined(f[5], fs[2]),
	}, true
}

// joined are the options of a mount and of its file system, each once.
func joined(mount, fs string) []string {
	var all []string
	for _, o := range strings.Split(mount+","+fs, ",") {
		if o = unescape(o); !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	return all
}

// escapes are how the kernel prints white space, backslash and the like.
var escapes = lazyregexp.New(`\\[0-3][0-7]{2}`)

func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return escapes().ReplaceAllStringFunc(s, func(e string) string {
		n, _ := strconv.ParseUint(e[1:], 8, 8)
		return string([]byte{byte(n)})
	})
}
