package azure

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/internal/host"
)

// What a file must be whose content is shown to the agent of Azure Arc.
const (
	challengeDir    = "/var/opt/azcmagent/tokens"
	challengeSuffix = ".key"
	maxChallenge    = 4096
	arcUser         = "himds"
	usersFile       = "/etc/passwd"
)

// challengeKey reads the file that a challenge names. Whoever answers on the agent's
// port could name any file: only one that the agent itself made is shown.
func (s *Source) challengeKey(h http.Header) (string, error) {
	p, err := challengePath(h)
	if err != nil {
		return "", err
	}
	if path.Clean(p) != p || path.Dir(p) != challengeDir || !strings.HasSuffix(p, challengeSuffix) {
		return "", fmt.Errorf("it names %q, which is no file %s/NAME%s", p, challengeDir, challengeSuffix)
	}
	before, err := s.host.Lstat(p)
	if err != nil {
		return "", err
	}
	if err := s.isChallenge(before); err != nil {
		return "", fmt.Errorf("%s %w", p, err)
	}
	text, err := s.readChallenge(p)
	if err != nil {
		return "", err
	}
	if after, err := s.host.Lstat(p); err != nil || !after.Unchanged(before) {
		return "", fmt.Errorf("%s changed while it was read", p)
	}
	return text, nil
}

// isChallenge says what a file lacks.
func (s *Source) isChallenge(i host.Info) error {
	switch {
	case !i.IsRegular():
		return errors.New("is no regular file")
	case i.Size > maxChallenge:
		return fmt.Errorf("has %d bytes, more than %d", i.Size, maxChallenge)
	case i.UID == 0:
		return nil
	}
	users, err := s.host.ReadFile(usersFile)
	if err != nil {
		return fmt.Errorf("is of user %d: %w", i.UID, err)
	}
	if uid, ok := userID(string(users), arcUser); !ok || uid != i.UID {
		return fmt.Errorf("is of user %d, not of root or %s", i.UID, arcUser)
	}
	return nil
}

func (s *Source) readChallenge(p string) (string, error) {
	f, err := s.host.Open(p) // follows no link
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxChallenge+1))
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(text))
	if len(text) > maxChallenge || key == "" || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", fmt.Errorf("%s holds no key", p)
	}
	return key, nil
}

// userID is the number of a user in the text of passwd(5).
func userID(text, name string) (int, bool) {
	for l := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSuffix(l, "\n"), ":")
		if len(fields) != 7 || fields[0] != name {
			continue
		}
		n, err := strconv.Atoi(fields[2])
		return n, err == nil && n >= 0
	}
	return 0, false
}
