package token

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// cluster tells its followers of Secrets.
type cluster struct {
	mu        sync.Mutex
	followers map[string]apiserver.Follower[core.Secret]
}

func (c *cluster) FollowSecret(ctx context.Context, namespace, name string, f apiserver.Follower[core.Secret]) {
	c.mu.Lock()
	c.followers[namespace+"/"+name] = f
	c.mu.Unlock()
	<-ctx.Done()
}

func (c *cluster) has(name, token string) {
	s := &core.Secret{Data: map[string][]byte{"token": []byte(token), "other": []byte("x")}}
	c.followers["kube-system/"+name].See(s)
	synctest.Wait()
}

type events struct {
	mu   sync.Mutex
	told []string
}

func (e *events) Warning(reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, reason+" "+message)
}

func (e *events) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.told, "\n")
}

const (
	one = "/var/lib/one/token"
	two = "/var/lib/two/deep/token"
)

// TestBegun: who waits for the tokens waits no longer than for what is known of each.
func TestBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, h, begun := &cluster{followers: map[string]apiserver.Follower[core.Secret]{}}, memory.New(), 0
		ctx, cancel := context.WithCancel(t.Context())
		s := &Sync{Cluster: c, Host: h, Events: &events{}, Files: []File{{"first", one}, {"second", two}, {"third", "/three"}}}
		s.Begun = func() {
			if begun++; begun == 1 {
				if text, err := h.ReadFile(one); err != nil || string(text) != "A" {
					t.Errorf("before the file: %q, %v", text, err)
				}
			}
		}
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		synctest.Wait()
		for _, step := range []struct {
			do   func()
			want int
		}{
			{func() {}, 0},
			{func() { c.has("first", "A") }, 1},
			{func() { c.has("first", "B") }, 1},
			{func() { c.followers["kube-system/second"].See(nil); synctest.Wait() }, 2},
			{func() { cancel(); <-ended }, 3},
		} {
			if step.do(); begun != step.want {
				t.Errorf("%d of %d", begun, step.want)
			}
		}
	})
}

// keep runs a sync of two files in a bubble.
func keep(t *testing.T, h Host, try func(*cluster, *events)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, e := &cluster{followers: map[string]apiserver.Follower[core.Secret]{}}, &events{}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- (&Sync{Cluster: c, Host: h, Events: e, Files: []File{{"first", one}, {"second", two}}}).Run(ctx)
		}()
		synctest.Wait()
		try(c, e)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

func wantFile(t *testing.T, h host.FS, p, content string) {
	t.Helper()
	text, err := h.ReadFile(p)
	if err != nil || string(text) != content {
		t.Errorf("%s has %q, %v", p, text, err)
		return
	}
	if i, err := h.Lstat(p); err != nil || i.Mode != 0o640 || i.UID != 0 || i.GID != 0 {
		t.Errorf("%s: %+v, %v", p, i, err)
	}
}

func TestTokensAreFiles(t *testing.T) {
	h := memory.New()
	keep(t, h, func(c *cluster, e *events) {
		c.has("first", "a")
		c.has("second", "b")
		wantFile(t, h, one, "a")
		wantFile(t, h, two, "b")
		c.has("first", "c")
		wantFile(t, h, one, "c")
		if e.String() != "" {
			t.Errorf("told %s", e)
		}
	})
}

func TestATokenIsPutBack(t *testing.T) {
	for name, harm := range map[string]func(*memory.Host){
		"removed":   func(h *memory.Host) { _ = h.Remove(one) },
		"edited":    func(h *memory.Host) { h.Overwrite(one, "x") },
		"chmodded":  func(h *memory.Host) { _ = h.Chmod(one, 0o644) },
		"chowned":   func(h *memory.Host) { _ = h.Chown(one, 7, 7) },
		"linked":    func(h *memory.Host) { _ = h.Remove(one); h.PutLink("/etc/passwd", one, 0) },
		"directory": func(h *memory.Host) { _ = h.Remove(one); _ = h.Remove("/var/lib/one") },
	} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			keep(t, h, func(c *cluster, _ *events) {
				c.has("first", "a")
				harm(h)
				synctest.Wait()
				wantFile(t, h, one, "a")
			})
		})
	}
}

func TestAnEqualTokenIsNotWritten(t *testing.T) {
	h := memory.New()
	keep(t, h, func(c *cluster, _ *events) {
		c.has("first", "a")
		before, _ := h.Lstat(one)
		c.has("first", "a")
		if after, _ := h.Lstat(one); !after.Unchanged(before) {
			t.Error("written again")
		}
	})
}

func TestWhatIsWrongWithASecretIsToldOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		see  func(apiserver.Follower[core.Secret])
		want string
	}{
		"missing": {func(f apiserver.Follower[core.Secret]) { f.See(nil) }, "does not exist"},
		"empty":   {func(f apiserver.Follower[core.Secret]) { f.See(&core.Secret{Data: map[string][]byte{"token": nil}}) }, `no data of key "token"`},
		"no key":  {func(f apiserver.Follower[core.Secret]) { f.See(&core.Secret{}) }, `no data of key "token"`},
		"refused": {func(f apiserver.Follower[core.Secret]) { f.Fail(errors.New("forbidden")) }, "forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			keep(t, h, func(c *cluster, e *events) {
				c.has("first", "a")
				for range 3 {
					tc.see(c.followers["kube-system/first"])
					synctest.Wait()
				}
				c.has("second", "b")
				if got := e.String(); strings.Count(got, "\n") != 0 || !strings.HasPrefix(got, "TokenSync "+one+": ") || !strings.Contains(got, tc.want) {
					t.Errorf("told %q", got)
				}
				wantFile(t, h, one, "a")
				wantFile(t, h, two, "b")
				c.has("first", "c")
				wantFile(t, h, one, "c")
			})
		})
	}
}

func TestWhatCannotBeWrittenIsTriedAgain(t *testing.T) {
	h := memory.New()
	h.PutDir(one)
	keep(t, h, func(c *cluster, e *events) {
		c.has("first", "a")
		c.has("second", "b")
		wantFile(t, h, two, "b")
		if got := e.String(); !strings.Contains(got, "a directory is there") {
			t.Errorf("told %q", got)
		}
		_ = h.Remove(one)
		time.Sleep(time.Minute)
		wantFile(t, h, one, "a")
	})
}

// hardOfHearing is a machine that can't be watched for a while, or whose first watches
// end by themselves.
type hardOfHearing struct {
	*memory.Host
	until time.Duration
	ends  bool

	begun time.Time
	mu    sync.Mutex
}

func (h *hardOfHearing) Watch(ctx context.Context, w host.Watched) (<-chan host.Event, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.begun.IsZero() {
		h.begun = time.Now()
	}
	switch {
	case time.Since(h.begun) >= h.until:
		return h.Host.Watch(ctx, w)
	case h.ends:
		none := make(chan host.Event)
		close(none)
		return none, nil
	}
	return nil, errors.New("too many watches")
}

func TestWithoutAWatchOfTheFileTheSecretStillCounts(t *testing.T) {
	h := memory.New()
	keep(t, &hardOfHearing{Host: h, until: time.Hour}, func(c *cluster, e *events) {
		c.has("first", "a")
		wantFile(t, h, one, "a")
		if !strings.Contains(e.String(), "too many watches") {
			t.Errorf("told %q", e)
		}
	})
}

func TestAFileThatCannotBeWatchedIsLookedAtEachMinuteUntilItCan(t *testing.T) {
	for name, tc := range map[string]struct {
		until time.Duration
		ends  bool
		want  string
	}{
		"no watch":        {150 * time.Second, false, "too many watches"},
		"the watch ended": {time.Second, true, "the watch has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			keep(t, &hardOfHearing{Host: h, until: tc.until, ends: tc.ends}, func(c *cluster, e *events) {
				c.has("first", "a")
				for range 3 {
					_ = h.Remove(one)
					time.Sleep(time.Minute)
					synctest.Wait()
					wantFile(t, h, one, "a")
				}
				_ = h.Remove(one)
				synctest.Wait()
				wantFile(t, h, one, "a")
				if got := e.String(); strings.Count(got, one+": ") != 1 || !strings.Contains(got, tc.want) {
					t.Errorf("told %q", got)
				}
			})
		})
	}
}

// silent is a machine that takes a watch and tells nothing.
type silent struct{ *memory.Host }

func (silent) Watch(context.Context, host.Watched) (<-chan host.Event, error) {
	return make(chan host.Event), nil
}

func TestAFileOfWhichNothingIsHeardIsLookedAtEachPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := memory.New()
		k := &keeper{Sync: &Sync{Host: silent{h}, Events: &events{}, Every: time.Hour}, File: File{"first", one}, news: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { k.run(ctx); close(ended) }()
		k.see(&core.Secret{Data: map[string][]byte{"token": []byte("a")}})
		synctest.Wait()
		for range 3 {
			h.Overwrite(one, "x")
			time.Sleep(59 * time.Minute)
			if text, _ := h.ReadFile(one); string(text) != "x" {
				t.Errorf("%q before its time", text)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			wantFile(t, h, one, "a")
		}
		cancel()
		<-ended
	})
}

func TestAWatchThatFailsIsNotTakenForSuccess(t *testing.T) {
	for after, deaf := range map[time.Duration]bool{time.Second: true, 61 * time.Second: true, 121 * time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			k := &keeper{Sync: &Sync{Host: &hardOfHearing{Host: memory.New(), until: 90 * time.Second}, Events: &events{}}, File: File{"first", one}, news: make(chan struct{}, 1)}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { k.run(ctx); close(ended) }()
			k.see(&core.Secret{Data: map[string][]byte{"token": []byte("a")}})
			time.Sleep(after)
			cancel()
			<-ended
			if is := strings.Contains(k.said, "too many watches"); is != deaf {
				t.Errorf("after %s the failure is %q", after, k.said)
			}
		})
	}
}

// full is a machine whose disk is full until it isn't.
type full struct {
	*memory.Host
	until time.Time
}

func (f full) Create(p string) (host.File, error) {
	if time.Now().Before(f.until) {
		return nil, &fs.PathError{Op: "create", Path: p, Err: errors.New("no space left on device")}
	}
	return f.Host.Create(p)
}

func TestAFullDiskIsToldAndSurvived(t *testing.T) {
	h := memory.New()
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{Sync: &Sync{Host: full{h, time.Now().Add(time.Minute)}, Events: &events{}}, File: File{"first", one}, news: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		go k.run(ctx)
		k.see(&core.Secret{Data: map[string][]byte{"token": []byte("a")}})
		time.Sleep(30 * time.Second)
		if _, err := h.Lstat(one); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("half a file: %v", err)
		}
		time.Sleep(3 * time.Minute)
		wantFile(t, h, one, "a")
		cancel()
		synctest.Wait()
	})
}
