// Package token keeps the tokens of Secrets in files: what programs of a node
// show to the API server.
package token

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"sync"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/host"
)

const (
	namespace = "kube-system"
	// dataKey is where a Secret has its token.
	dataKey = "token"
	// mode is the published one: a group of the machine may read a token.
	mode = fs.FileMode(0o640)
	// reason of the events.
	reason = "TokenSync"
	// deafFor is how long a file that can't be watched goes without a look at it.
	deafFor = time.Minute
)

// Cluster follows Secrets.
type Cluster interface {
	FollowSecret(ctx context.Context, namespace, name string, f apiserver.Follower[core.Secret])
}

// Host is the machine.
type Host interface {
	host.FS
	host.Watcher
}

// Recorder tells people.
type Recorder interface {
	Warning(reason, message string)
}

// File is where the token of a Secret is kept.
type File struct {
	Secret string
	Path   string
}

// Sync keeps files. Each has its own watch of its Secret and of its path, so that
// none waits for another.
type Sync struct {
	Cluster Cluster
	Host    Host
	Events  Recorder
	Files   []File
	// Every is between two looks at a file of which nothing was heard; 0 is none.
	Every time.Duration
	// Begun, unless nil, is called once for each file: when it holds its token, it is known
	// why it does not, or nobody looks after it any more.
	Begun func()

	noting sync.Mutex
}

// Run keeps the files until ctx ends. A Secret that is missing or has no token
// leaves the file as it is: a token that still counts is better than none.
func (s *Sync) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, f := range s.Files {
		k := &keeper{Sync: s, File: f, news: make(chan struct{}, 1)}
		all.Go(func() {
			s.Cluster.FollowSecret(ctx, namespace, f.Secret, apiserver.Follower[core.Secret]{See: k.see, Fail: k.cannotSee})
		})
		all.Go(func() { k.run(ctx) })
	}
	all.Wait()
	return nil
}

// keeper keeps one file.
type keeper struct {
	*Sync
	File
	news chan struct{}

	mu      sync.Mutex
	token   []byte
	failure error

	// changes are those of the file; without them it is looked at when retry says so,
	// and deaf is why.
	changes <-chan host.Event
	retry   <-chan time.Time
	deaf    error
	// sync is when the file is looked at although nothing was heard of it.
	sync <-chan time.Time

	said string // the failure that was told last

	begun sync.Once
}

// see takes the token out of the Secret and keeps nothing else.
func (k *keeper) see(s *core.Secret) {
	switch {
	case s == nil:
		k.set(nil, fmt.Errorf("secret %s/%s does not exist", namespace, k.Secret))
	case len(s.Data[dataKey]) == 0:
		k.set(nil, fmt.Errorf("secret %s/%s has no data of key %q", namespace, k.Secret, dataKey))
	default:
		k.set(s.Data[dataKey], nil)
	}
}

// cannotSee leaves the token as it is.
func (k *keeper) cannotSee(err error) {
	k.mu.Lock()
	token := k.token
	k.mu.Unlock()
	k.set(token, fmt.Errorf("read secret %s/%s: %w", namespace, k.Secret, err))
}

func (k *keeper) set(token []byte, failure error) {
	k.mu.Lock()
	k.token, k.failure = token, failure
	k.mu.Unlock()
	select {
	case k.news <- struct{}{}:
	default:
	}
}

func (k *keeper) get() ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.token, k.failure
}

// run writes when the Secret or the file changes, and again where that failed.
func (k *keeper) run(ctx context.Context) {
	defer k.begin()
	k.listen(ctx)
	k.tell(k.deaf) // the Secret's own changes are still written
	next := apiserver.Intervals(time.Second, time.Minute)
	var again <-chan time.Time
	if k.Every > 0 {
		all := time.NewTicker(k.Every)
		defer all.Stop()
		k.sync = all.C
	}
	for k.wait(ctx, again) {
		again = nil
		token, failure := k.get()
		failure = errors.Join(k.deaf, failure)
		if err := k.write(token); err != nil {
			again = time.After(next.NextBackOff())
			failure = errors.Join(failure, err)
		} else {
			next.Reset()
		}
		k.tell(failure)
		if len(token) > 0 || failure != nil {
			k.begin()
		}
	}
}

func (k *keeper) begin() {
	if k.Begun != nil {
		k.begun.Do(k.Begun)
	}
}

// wait waits until there is a reason to look at the file; false is the end of ctx.
func (k *keeper) wait(ctx context.Context, again <-chan time.Time) bool {
	select {
	case <-k.news:
	case <-again:
	case <-k.sync:
	case _, open := <-k.changes:
		if !open {
			k.deafen(errors.New("the watch has ended"))
		}
	case <-k.retry:
		k.listen(ctx)
	case <-ctx.Done():
	}
	return ctx.Err() == nil // its end closes changes, too, and fails a watch
}

// listen hears of what happens to the file. Where that is not possible now, it is
// tried again soon.
func (k *keeper) listen(ctx context.Context) {
	changes, err := k.Host.Watch(ctx, host.Watched{Names: []string{k.Path}})
	if err != nil {
		k.deafen(err)
		return
	}
	k.changes, k.retry, k.deaf = changes, nil, nil
}

func (k *keeper) deafen(why error) {
	k.changes, k.retry, k.deaf = nil, time.After(deafFor), fmt.Errorf("changes are seen late: %w", why)
}

// tell says a failure once, until it is another.
func (k *keeper) tell(failure error) {
	text := ""
	if failure != nil {
		text = failure.Error()
	}
	if text == k.said {
		return
	}
	k.said = text
	if failure == nil {
		slog.Info("token is in place", "secret", k.Secret, "path", k.Path)
		return
	}
	slog.Warn("token", "secret", k.Secret, "path", k.Path, "error", failure)
	k.Events.Warning(reason, k.Path+": "+text)
}

// write makes the file what it has to be, and touches nothing that is so.
func (k *keeper) write(token []byte) error {
	if len(token) == 0 {
		return nil
	}
	info, err := k.Host.Lstat(k.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return k.replace(token)
	case err != nil:
		return fmt.Errorf("look for a token: %w", err)
	case info.Mode.IsDir():
		return fmt.Errorf("write token %s: a directory is there", k.Path)
	}
	if info.IsRegular() && info.Mode == mode && info.UID == 0 && info.GID == 0 {
		old, err := k.Host.ReadFile(k.Path)
		if err == nil && string(old) == string(token) {
			return nil
		}
	}
	return k.replace(token)
}

func (k *keeper) replace(token []byte) error {
	if err := k.remember(k.Path, token); err != nil {
		return err
	}
	if _, err := host.MkdirAll(k.Host, path.Dir(k.Path)); err != nil {
		return fmt.Errorf("make the directory of a token: %w", err)
	}
	if err := host.WriteFile(k.Host, k.Path, token, host.Attributes{Mode: mode}); err != nil {
		return fmt.Errorf("write token: %w", err)
	}
	return nil
}
