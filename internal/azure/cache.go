package azure

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// CacheDir holds tokens until they are about to expire, at most until the next boot:
// they are never on a disk.
const CacheDir = "/run/berth/tokens"

// Credential is a token for a program that shows it to the API server.
type Credential struct {
	Token
	// Renew is when the program should ask for the next one.
	Renew time.Time
	// Trouble is why there is no younger token though it is time for one; nil where
	// there is no trouble.
	Trouble error
}

// Early renewal: this long before a token expires, but not before three quarters of
// its time are over; and how long a token serves that could not be renewed.
const (
	early      = 5 * time.Minute
	trialPause = 30 * time.Second
)

// cached is the content of a file in CacheDir.
type cached struct {
	Token   string    `json:"token"`
	Expires time.Time `json:"expires"`
	Renew   time.Time `json:"renew"`
}

// Cached is ForServer with the tokens of earlier calls: one that is not yet to be
// renewed is given again. Of several that call at a time, one asks.
func (s *Source) Cached(ctx context.Context, a *desired.AzureIdentity) (Credential, error) {
	if err := a.Validate(); err != nil {
		return Credential{}, fmt.Errorf("identity: %w", err)
	}
	p := cachePath(a)
	if c, ok := s.recall(p, a); ok && s.host.Now().Before(c.Renew) {
		return c, nil
	}
	if err := host.PrivateDir(s.host, CacheDir); err != nil {
		return Credential{}, fmt.Errorf("keep tokens: %w", err)
	}
	unlock, err := s.host.Lock(ctx, p+".lock", fmt.Sprintf("berth token (pid %d)", os.Getpid()))
	if err != nil {
		return Credential{}, fmt.Errorf("wait for another berth token: %w", err)
	}
	defer func() { _ = unlock() }() // the end of the program gives it back too
	return s.renew(ctx, p, a)
}

// renew asks for a token unless another program has one meanwhile. While the old one
// is in force, a service that does not answer breaks nothing.
func (s *Source) renew(ctx context.Context, p string, a *desired.AzureIdentity) (Credential, error) {
	old, ok := s.recall(p, a)
	now := s.host.Now()
	if ok && now.Before(old.Renew) {
		return old, nil
	}
	t, err := s.obtain(ctx, a, a.ServerID)
	if err != nil {
		if !ok {
			return Credential{}, err
		}
		old.Renew, old.Trouble = earlier(now.Add(trialPause), old.Expires), err
		return old, nil
	}
	c := Credential{Token: t, Renew: renewal(now, t.Expires)}
	text, err := json.Marshal(cached{t.Text.Reveal(), t.Expires, c.Renew})
	if err != nil {
		return c, err
	}
	if err := host.WriteFile(s.host, p, text, host.Attributes{Mode: 0o600, UID: os.Geteuid(), GID: os.Getegid()}); err != nil {
		return c, fmt.Errorf("keep a token: %w", err)
	}
	return c, nil
}

func renewal(now, expires time.Time) time.Time {
	return expires.Add(-min(early, expires.Sub(now)/4))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// cachePath tells identities apart.
func cachePath(a *desired.AzureIdentity) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []string{string(a.Kind), a.TenantID, a.ClientID, a.ServerID, a.Authority,
		a.ClientSecretFile, a.ClientSecretEnv, a.ClientSecret.Reveal(), a.ClientCertificateFile}))
	return fmt.Sprintf("%s/%x", CacheDir, sum[:12])
}

// recall is a token that was kept and is in force. A file that anybody else could
// have written, or that is damaged, is none.
func (s *Source) recall(p string, a *desired.AzureIdentity) (Credential, bool) {
	info, err := s.host.Lstat(p)
	if err != nil || !info.IsRegular() || info.Mode.Perm() != 0o600 || info.UID != os.Geteuid() || info.Size > 2*maxToken {
		return Credential{}, false
	}
	text, err := s.host.ReadFile(p)
	if err != nil {
		return Credential{}, false
	}
	c, err := parseCached(text)
	if err != nil {
		return Credential{}, false
	}
	t, err := check(c.Token, a.ServerID, a.TenantID, s.host.Now())
	if err != nil {
		return Credential{}, false
	}
	return Credential{Token: t, Renew: earlier(c.Renew, t.Expires)}, true
}

func parseCached(text []byte) (cached, error) {
	var c cached
	if err := json.Unmarshal(text, &c); err != nil {
		return c, err
	}
	if c.Token == "" || c.Renew.IsZero() {
		return c, fs.ErrInvalid
	}
	return c, nil
}
