package azure

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// CacheDir holds tokens until they are about to expire, at most until the next boot:
// they are never on a disk.
const CacheDir = paths.RunDir + "/tokens"

// Credential is a token for a program that shows it to the API server.
type Credential struct {
	Token
	// Renew is when the program should ask for the next one.
	Renew time.Time
	// Trouble is why there is no younger token though it is time for one, or why this
	// one could not be kept; nil where there is no trouble.
	Trouble error
}

// Early renewal: this long before a token expires, but not before three quarters of
// its time are over; how long a token serves that could not be renewed; and how long
// one that is in force waits for another caller, who may have a younger one soon.
const (
	early      = 5 * time.Minute
	trialPause = 30 * time.Second
	lockPause  = 5 * time.Second
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
	waiting := ctx
	if c, ok := s.recall(p, a); ok {
		if s.host.Now().Before(c.Renew) {
			return c, nil
		}
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, lockPause)
		defer cancel()
	}
	unlock, err := s.lock(waiting, p)
	if err != nil {
		return s.unkept(ctx, p, a, err)
	}
	defer func() { _ = unlock() }() // the end of the program gives it back too
	return s.renew(ctx, p, a)
}

// What to do about tokens that can't be kept.
const (
	roomRemedy = "Look at /run: mount | grep /run, df /run; " + CacheDir + " must be a directory that root can write."
	lockRemedy = "Another berth token asks at the moment, and has no answer: try again in a minute; if it stays, end the process that is named."
)

// lock waits until nobody else asks for the token.
func (s *Source) lock(ctx context.Context, p string) (unlock func() error, err error) {
	if err := host.PrivateDir(s.host, CacheDir); err != nil {
		return nil, failed("keep tokens", roomRemedy, err)
	}
	unlock, err = s.host.Lock(ctx, p+".lock", fmt.Sprintf("berth token (pid %d)", os.Getpid()))
	if _, locked := errors.AsType[*host.LockedError](err); locked {
		return nil, failed("wait for another berth token", lockRemedy, err)
	}
	if err != nil {
		return nil, failed("keep tokens", roomRemedy, err)
	}
	return unlock, nil
}

// unkept is a token where the machine keeps none at the moment: the one that was kept
// before while it is in force, else one that is asked for.
func (s *Source) unkept(ctx context.Context, p string, a *desired.AzureIdentity, why error) (Credential, error) {
	if old, ok := s.recall(p, a); ok {
		return s.oldToken(old, why), nil
	}
	if ctx.Err() != nil {
		return Credential{}, why
	}
	now := s.host.Now()
	t, err := s.obtain(ctx, a, a.ServerID)
	if err != nil {
		return Credential{}, err
	}
	return Credential{Token: t, Renew: renewal(now, t.Expires), Trouble: fmt.Errorf("the token is not kept: %w", why)}, nil
}

// oldToken is a token of before that serves a little longer.
func (s *Source) oldToken(old Credential, why error) Credential {
	if now := s.host.Now(); !now.Before(old.Renew) {
		old.Renew, old.Trouble = earlier(now.Add(trialPause), old.Expires), fmt.Errorf("the token of before is given once more: %w", why)
	}
	return old
}

// renew asks for a token unless another program has one meanwhile. While the old one
// is in force, a service that does not answer breaks nothing; neither does a machine
// that can't keep the new one.
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
		return s.oldToken(old, err), nil
	}
	c := Credential{Token: t, Renew: renewal(now, t.Expires)}
	text, err := json.Marshal(cached{t.Text.Reveal(), t.Expires, c.Renew})
	if err == nil {
		err = host.WriteFile(s.host, p, text, host.Attributes{Mode: 0o600, UID: os.Geteuid(), GID: os.Getegid()})
	}
	if err != nil {
		c.Trouble = fmt.Errorf("the token is not kept: %w", err)
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
