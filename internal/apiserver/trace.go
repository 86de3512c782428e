package apiserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http/httptrace"
	"net/url"
	"sync"
)

// journey records how far one exchange came. A dial may go on in a goroutine of
// its own, therefore the lock.
type journey struct {
	mu    sync.Mutex
	stage Stage
}

// travel returns a context under which an exchange records its stages.
func travel(ctx context.Context) (context.Context, *journey) {
	j := &journey{stage: StageDNS}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		ConnectStart:      func(string, string) { j.reach(StageTCP) },
		TLSHandshakeStart: func() { j.reach(StageTLS) },
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			if err == nil {
				j.reach(StageHTTP)
			}
		},
		GotConn: func(httptrace.GotConnInfo) { j.reach(StageHTTP) },
	}), j
}

func (j *journey) reach(s Stage) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if order(s) > order(j.stage) {
		j.stage = s
	}
}

func order(s Stage) int {
	switch s {
	case StageTCP:
		return 1
	case StageTLS:
		return 2
	case StageHTTP:
		return 3
	}
	return 0
}

// blame makes an *Error of what ended the exchange. URLs and the wrappings of
// the HTTP client go: the message names the host already.
func (j *journey) blame(host string, err error) *Error {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := &Error{Stage: j.stage, Host: host, Cause: err, Attempts: 1}
	if u, ok := errors.AsType[*url.Error](err); ok {
		e.Cause = u.Err
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		e.Stage, e.Cause = StageDNS, dns
	}
	if errors.Is(err, context.DeadlineExceeded) {
		e.Cause = fmt.Errorf("no answer in time: %w", e.Cause)
	}
	if distrust(err) {
		e.Stage, e.Permanent = StageTLS, true
	}
	return e
}
