package azure

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// later is a machine whose clock is set forward.
type later struct {
	*memory.Host
	by time.Duration
}

func (l *later) Now() time.Time { return l.Host.Now().Add(l.by) }

// owned is a memory machine's file of whoever runs the test.
func owned(t *testing.T, m *memory.Host, p string) string {
	t.Helper()
	b, err := m.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCached(t *testing.T) {
	m := &later{Host: machine()}
	first, second := jwt(good(m.Now(), time.Hour)), jwt(good(m.Now(), 3*time.Hour))
	s := serve(t, give(first), give(second), say(500, ""))
	source := sourceAt(m, s)
	get := func(want string, requests int) Credential {
		t.Helper()
		c, err := source.Cached(context.Background(), managed())
		if err != nil || c.Text.Reveal() != want || s.asked() != requests {
			t.Fatalf("%.20s, %v after %d requests", c.Text.Reveal(), err, s.asked())
		}
		return c
	}
	c := get(first, 1)
	if left := c.Expires.Sub(c.Renew); left != early {
		t.Errorf("renewed %s before the end", left)
	}
	info, err := m.Lstat(cachePath(managed()))
	if err != nil || info.Mode.Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode, err)
	}
	if dir, err := m.Lstat(CacheDir); err != nil || dir.Mode.Perm() != 0o700 {
		t.Errorf("%v, %v", dir.Mode, err)
	}
	m.by = 54 * time.Minute
	get(first, 1)
	m.by = 56 * time.Minute // early renewal
	get(second, 2)
	m.by = 176 * time.Minute // nobody answers: the token is in force for a while
	if c := get(second, 2+tries); c.Trouble == nil || c.Renew.Sub(m.Now()) > trialPause {
		t.Errorf("%+v", c)
	}
	m.by = 181 * time.Minute
	if _, err := source.Cached(context.Background(), managed()); err == nil {
		t.Error("a token that is over was given")
	}
}

// A token that lives for a short time is not renewed all the time.
func TestRenewal(t *testing.T) {
	now := time.Unix(1000, 0)
	for life, want := range map[time.Duration]time.Duration{time.Hour: 55 * time.Minute, 4 * time.Minute: 3 * time.Minute} {
		if got := renewal(now, now.Add(life)).Sub(now); got != want {
			t.Errorf("%s: after %s", life, got)
		}
	}
}

// What is damaged, of somebody else, wider than 0600 or for another server does not
// count.
func TestCacheDistrusted(t *testing.T) {
	for name, spoil := range map[string]func(m *memory.Host, p, text string){
		"damaged": func(m *memory.Host, p, _ string) { m.Overwrite(p, "{") },
		"wide":    func(m *memory.Host, p, _ string) { _ = m.Chmod(p, 0o640) },
		"foreign": func(m *memory.Host, p, _ string) { _ = m.Chown(p, os.Geteuid()+7, 0) },
		"another": func(m *memory.Host, p, text string) {
			c := good(m.Now(), time.Hour)
			c["aud"] = other
			m.Overwrite(p, strings.Replace(text, strings.Split(text, `"`)[3], jwt(c), 1))
		},
		"a link": func(m *memory.Host, p, text string) {
			put(m, "/tmp/x", text, os.Geteuid())
			_ = m.Remove(p)
			m.PutLink("/tmp/x", p, os.Geteuid())
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine()
			s := serve(t, give(jwt(good(m.Now(), time.Hour))))
			source := sourceAt(m, s)
			for want := 1; want <= 2; want++ {
				if _, err := source.Cached(context.Background(), managed()); err != nil || s.asked() != want {
					t.Fatalf("%v after %d requests, want %d", err, s.asked(), want)
				}
				p := cachePath(managed())
				spoil(m, p, owned(t, m, p))
			}
		})
	}
}

// A token that does not pass is not kept.
func TestNothingWrongIsKept(t *testing.T) {
	m := machine()
	c := good(m.Now(), time.Hour)
	c["tid"] = other
	if _, err := sourceAt(m, serve(t, give(jwt(c)))).Cached(context.Background(), managed()); err == nil {
		t.Fatal("no error")
	}
	names, err := m.ReadDir(CacheDir)
	for _, n := range names {
		if path.Ext(n) != ".lock" {
			t.Errorf("%s is there, %v", n, err)
		}
	}
}

// Identities do not share tokens.
func TestCachePath(t *testing.T) {
	seen := map[string]bool{}
	a, b, c := managed(), managed(), managed()
	b.ClientID, c.ServerID = "", other
	for _, i := range []string{cachePath(a), cachePath(b), cachePath(c), cachePath(arc())} {
		if seen[i] {
			t.Errorf("%s twice", i)
		}
		seen[i] = true
	}
}

// Of many that need a token at once, one asks.
func TestCachedTogether(t *testing.T) {
	m := machine()
	token := jwt(good(m.Now(), time.Hour))
	s := serve(t, give(token))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if c, err := sourceAt(m, s).Cached(context.Background(), managed()); err != nil || c.Text.Reveal() != token {
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	if s.asked() != 1 {
		t.Errorf("%d requests", s.asked())
	}
}

// A lock that is not given back names who holds it and what to do; a token that is in
// force is given without.
func TestCachedLocked(t *testing.T) {
	m := &later{Host: machine()}
	token := jwt(good(m.Now(), time.Hour))
	s := serve(t, give(token))
	source := sourceAt(m, s)
	stranger := managed()
	stranger.ClientID = other
	if _, err := source.Cached(context.Background(), managed()); err != nil {
		t.Fatal(err)
	}
	m.by = 57 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), Budget)
		defer cancel()
		for _, a := range []*desired.AzureIdentity{managed(), stranger} {
			unlock, err := m.Lock(ctx, cachePath(a)+".lock", "somebody")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = unlock() }()
		}
		start := time.Now()
		c, err := source.Cached(ctx, managed())
		if err != nil || c.Text.Reveal() != token || c.Trouble == nil || !strings.Contains(c.Trouble.Error(), "held by somebody") {
			t.Errorf("%v, %v", c.Trouble, err)
		}
		if left := c.Renew.Sub(m.Now()); left <= 0 || left > trialPause {
			t.Errorf("to be renewed in %s", left)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
		if _, err := source.Cached(ctx, stranger); err == nil || !strings.Contains(err.Error(), "held by somebody") || !strings.Contains(hintOf(err), "try again") {
			t.Errorf("%v; %s", err, hintOf(err))
		}
	})
	if s.asked() != 1 {
		t.Errorf("%d requests", s.asked())
	}
}

// noRoom is a machine whose /run is full, or read-only from its root on.
type noRoom struct {
	*later
	lock, mkdir, create bool
}

func (n noRoom) Lock(ctx context.Context, p, holder string) (func() error, error) {
	if n.lock {
		return nil, &fs.PathError{Op: "open", Path: p, Err: syscall.EROFS}
	}
	return n.later.Lock(ctx, p, holder)
}

func (n noRoom) Mkdir(p string, mode fs.FileMode) error {
	if n.mkdir {
		return &fs.PathError{Op: "mkdir", Path: p, Err: syscall.EROFS}
	}
	return n.later.Mkdir(p, mode)
}

func (n noRoom) Create(p string) (host.File, error) {
	if n.create {
		return nil, &fs.PathError{Op: "open", Path: p, Err: syscall.ENOSPC}
	}
	return n.later.Create(p)
}

// A token that can't be kept is given all the same, and so is one of before.
func TestCachedWithoutRoom(t *testing.T) {
	for name, tc := range map[string]struct {
		fault noRoom
		old   bool // there is one
		want  string
		asked int
	}{
		"full":                          {noRoom{create: true}, false, "is not kept", 1},
		"full, with a token of before":  {noRoom{create: true}, true, "is not kept", 2},
		"no lock":                       {noRoom{lock: true}, false, "is not kept", 1},
		"no lock, with one of before":   {noRoom{lock: true}, true, "given once more", 1},
		"no directory":                  {noRoom{mkdir: true}, false, "is not kept", 1},
		"no directory to be made again": {noRoom{mkdir: true}, true, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			m := &later{Host: machine()}
			token := jwt(good(m.Now(), time.Hour))
			s := serve(t, give(token))
			if tc.old {
				if _, err := sourceAt(m, s).Cached(context.Background(), managed()); err != nil {
					t.Fatal(err)
				}
				m.by = 57 * time.Minute
			}
			tc.fault.later = m
			c, err := sourceAt(tc.fault, s).Cached(context.Background(), managed())
			if err != nil || c.Text.Reveal() != token || s.asked() != tc.asked {
				t.Fatalf("%v after %d requests", err, s.asked())
			}
			if (c.Trouble != nil) != (tc.want != "") || c.Trouble != nil && !strings.Contains(c.Trouble.Error(), tc.want) {
				t.Errorf("%v", c.Trouble)
			}
		})
	}
}

// A service that does not answer says more than the lack of room.
func TestCachedNothing(t *testing.T) {
	m := &later{Host: machine()}
	_, err := sourceAt(noRoom{later: m, lock: true}, serve(t, say(400, ""))).Cached(context.Background(), managed())
	if err == nil || !strings.Contains(err.Error(), "HTTP status 400") || hintOf(err) == "" {
		t.Errorf("%v", err)
	}
}

func FuzzParseCached(f *testing.F) {
	b, err := json.Marshal(cached{"t", time.Unix(1, 0), time.Unix(1, 0)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := parseCached(text); err == nil && (c.Token == "" || c.Renew.IsZero()) {
			t.Errorf("%+v", c)
		}
	})
}
