package provision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/component/proxy"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/nodegpu"
	"github.com/berth-dev/berth/internal/paths"
)

// Prober verifies checks: that of a way out by its command, that of GPUs by a look at
// the machine's devices, that of a disk by the mounts, that of the API server by asking it.
type Prober struct {
	Host   host.Host
	Server apiserver.Prober
}

// Probe implements converge.Prober. The error of a command is an *OutboundError, that of
// a disk a *NoDiskError.
func (p Prober) Probe(ctx context.Context, c *desired.Check) error {
	if c.Name == desired.CheckGPU {
		return nodegpu.Await(ctx, p.Host, c.Timeout)
	}
	if c.Mount != "" {
		return awaitMount(ctx, p.Host, c.Mount, c.Timeout)
	}
	if len(c.Command) == 0 {
		return p.Server.Probe(ctx, c)
	}
	env, done, err := environment(p.Host, c.Via)
	if err != nil {
		return fmt.Errorf("trust CAs for %s: %w", c.Command[0], err)
	}
	err = prove(ctx, p.Host, c, env)
	return errors.Join(err, done())
}

// How often, how long and with which pause a command is tried: as published.
const (
	outboundTries = 20
	outboundTry   = 15 * time.Second
	outboundPause = time.Second
)

// prove runs the command until it succeeds. A program that is not there is not asked
// for again: nothing brings it meanwhile.
func prove(ctx context.Context, h host.Host, c *desired.Check, env []string) error {
	start := h.Now()
	for tries := 1; ; tries++ {
		left := c.Timeout - h.Now().Sub(start)
		err := tryOnce(ctx, h, host.Command{Path: c.Command[0], Args: c.Command[1:], Env: env}, min(left, outboundTry))
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", c.Command[0], context.Cause(ctx))
		}
		failed := &OutboundError{Command: c.Command, Tries: tries, Elapsed: h.Now().Sub(start), Err: err}
		if tries == outboundTries || failed.Elapsed+outboundPause >= c.Timeout || failed.absent() {
			return failed
		}
		if err := h.Sleep(ctx, outboundPause); err != nil {
			return fmt.Errorf("%s: %w", c.Command[0], context.Cause(ctx))
		}
	}
}

func tryOnce(ctx context.Context, h host.Runner, c host.Command, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := h.Run(ctx, c)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("it had not ended after %s", limit.Round(time.Second))
	}
	return err
}

// egressCAs are for the command alone, and there only while it runs: the trust store
// of the machine is not changed yet.
const egressCAs = paths.RunDir + "/egress.pem"

// bundles are where distributions keep the CAs of the machine.
var bundles = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"}

// environment is the way out for a command, by the variables that curl, wget and
// OpenSSL read. done takes back what it needs on the disk.
func environment(h host.FS, via *desired.Egress) (env []string, done func() error, err error) {
	done = func() error { return nil }
	if via == nil {
		return nil, done, nil
	}
	env = proxy.Settings{HTTP: via.HTTPProxy, HTTPS: via.HTTPSProxy, Direct: via.NoProxy}.Environ()
	if len(via.CAs) == 0 {
		return env, done, nil
	}
	if err := writeCAs(h, via.CAs); err != nil {
		return nil, done, err
	}
	return append(env, "SSL_CERT_FILE="+egressCAs, "CURL_CA_BUNDLE="+egressCAs), func() error { return h.Remove(egressCAs) }, nil
}

// writeCAs puts CAs after those of the machine: the variables name all that count.
func writeCAs(h host.FS, cas []string) error {
	var all strings.Builder
	for _, p := range bundles {
		if b, err := h.ReadFile(p); err == nil {
			all.Write(b)
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, ca := range cas {
		all.WriteString("\n" + ca)
	}
	if _, err := host.MkdirAll(h, paths.RunDir); err != nil {
		return err
	}
	return host.WriteFile(h, egressCAs, []byte(all.String()), host.Attributes{Mode: 0o644})
}

// OutboundError is a command that did not prove a way out.
type OutboundError struct {
	Command []string
	// Tries and Elapsed say how often and how long it was tried.
	Tries   int
	Elapsed time.Duration
	// Err is the last try's error.
	Err error
}

func (e *OutboundError) absent() bool { return errors.Is(e.Err, fs.ErrNotExist) }

// Error names the command, the last try's error, and how often it was tried.
func (e *OutboundError) Error() string {
	if exit, ok := errors.AsType[*host.ExitError](e.Err); ok { // names the command itself
		return fmt.Sprintf("no way out: %v%s", exit, e.effort())
	}
	return fmt.Sprintf("no way out: %s: %v%s", strings.Join(e.Command, " "), e.Err, e.effort())
}

func (e *OutboundError) effort() string {
	if e.Tries < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d tries in %s)", e.Tries, e.Elapsed.Round(time.Second))
}

// Unwrap returns the last try's error.
func (e *OutboundError) Unwrap() error { return e.Err }

// ExitCode is the published code.
func (e *OutboundError) ExitCode() int { return exitcode.Outbound }

// Hint says what to look at where the code's own hint is none.
func (e *OutboundError) Hint() string {
	if e.absent() {
		return "put " + e.Command[0] + " into the image, or name another command in outbound_command; no shell runs it"
	}
	return ""
}
