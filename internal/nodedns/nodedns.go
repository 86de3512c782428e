// Package nodedns is what a node does around the start of its own name server: the
// server is given the machine's name servers and its addresses, and the machine asks it
// as long as it answers.
package nodedns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"time"

	"github.com/berth-dev/berth/internal/component/localdns"
	"github.com/berth-dev/berth/internal/host"
)

// Links gives the machine addresses of its own.
type Links interface {
	Put(name string, addresses []netip.Addr) error
	Remove(name string, addresses []netip.Addr) error
}

// Server is the name server of this machine.
type Server struct {
	Host  host.Host
	Links Links
	// Client asks the server by HTTP whether it is ready.
	Client *http.Client
	// Process is the server's, by its number, where it is known that there is one.
	Process string
}

// readable is a file that everybody may read.
var readable = host.Attributes{Mode: 0o644}

// Prepare comes before the server: it has its configuration and its addresses then.
func (s Server) Prepare(context.Context) error {
	text, err := s.Host.ReadFile(localdns.Corefile)
	if err != nil {
		return fmt.Errorf("read the name server's configuration: %w", err)
	}
	servers, err := upstream(s.Host)
	if err != nil {
		return err
	}
	if err := host.WriteFile(s.Host, localdns.Running, []byte(localdns.WithUpstream(string(text), servers)), readable); err != nil {
		return fmt.Errorf("write the name server's configuration: %w", err)
	}
	if _, err := s.Host.Lstat(localdns.HostsFile); errors.Is(err, fs.ErrNotExist) {
		if err := host.WriteFile(s.Host, localdns.HostsFile, nil, readable); err != nil {
			return fmt.Errorf("write the name server's addresses: %w", err)
		}
	}
	return s.Links.Put(localdns.Link, localdns.Addresses())
}

// Announce waits until the server answers; then the machine asks it first.
func (s Server) Announce(ctx context.Context) error {
	text, err := s.Host.ReadFile(localdns.Running)
	if err != nil {
		return fmt.Errorf("read the name server's configuration: %w", err)
	}
	for _, url := range localdns.ReadyURLs(string(text)) {
		if err := s.ready(ctx, url); err != nil {
			return fmt.Errorf("wait until the name server is ready: %w", err)
		}
	}
	return s.point(ctx)
}

// Withdraw gives the machine its own name servers back, and takes the addresses away.
// It does what it can.
func (s Server) Withdraw(ctx context.Context) error {
	return errors.Join(s.unpoint(ctx), s.Links.Remove(localdns.Link, localdns.Addresses()))
}

// Between tries; systemd ends the whole at the limit of the start.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// ready asks until the answer is that all is well, or nobody is left to give it.
func (s Server) ready(ctx context.Context, url string) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := s.ask(ctx, url)
		if err == nil {
			return nil
		}
		if s.ended() {
			return fmt.Errorf("the name server has ended: %w", err)
		}
		if s.Host.Sleep(ctx, pause) != nil {
			return err
		}
	}
}

// ended: systemd would wait for what waits for the server, and start neither again.
func (s Server) ended() bool {
	if s.Process == "" {
		return false
	}
	_, err := s.Host.Lstat("/proc/" + s.Process)
	return errors.Is(err, fs.ErrNotExist)
}

func (s Server) ask(ctx context.Context, url string) error {
	ctx, end := context.WithTimeout(ctx, 2*time.Second)
	defer end()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := s.Client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: HTTP status %d", url, answer.StatusCode)
	}
	return nil
}
