package azure

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// transport answers the n-th request with the n-th step, and with the last one from then
// on.
type transport struct {
	steps []step
	asked int
}

type step struct {
	status int
	after  string // Retry-After
	err    error
}

func (t *transport) RoundTrip(*http.Request) (*http.Response, error) {
	s := t.steps[min(t.asked, len(t.steps)-1)]
	t.asked++
	if s.err != nil {
		return nil, s.err
	}
	h := http.Header{}
	if s.after != "" {
		h.Set("Retry-After", s.after)
	}
	return &http.Response{StatusCode: s.status, Header: h, Body: http.NoBody}, nil
}

func dialError(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }

// A service is asked again as late as it says, and no pause is begun that leads beyond
// the time that there is.
func TestPatience(t *testing.T) {
	timeout := dialError(os.ErrDeadlineExceeded)
	at := func(d time.Duration) string { // synctest begins at this moment
		return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(d).Format(http.TimeFormat)
	}
	for name, tc := range map[string]struct {
		p           patience
		steps       []step
		status      int // of the last answer; 0: an error of the way
		asked       int
		least, most time.Duration
	}{
		"well":                    {commonPatience, []step{{status: 200}}, 200, 1, 0, 0},
		"refused":                 {commonPatience, []step{{status: 400}}, 400, 1, 0, 0},
		"busy once":               {commonPatience, []step{{status: 503}, {status: 200}}, 200, 2, time.Second, 2 * time.Second},
		"busy for long":           {commonPatience, []step{{status: 503}}, 503, tries, 4 * time.Second, 15 * time.Second},
		"back in a minute":        {instancePatience, []step{{status: 410}, {status: 410}, {status: 410}, {status: 410}, {status: 410}, {status: 410}, {status: 200}}, 200, 7, 60 * time.Second, 60 * time.Second},
		"back in 70 s":            {instancePatience, []step{{status: 410}, {status: 410}, {status: 410}, {status: 410}, {status: 410}, {status: 410}, {status: 410}, {status: 200}}, 200, 8, 70 * time.Second, 70 * time.Second},
		"not back":                {instancePatience, []step{{status: 410}}, 410, 8, 70 * time.Second, 70 * time.Second},
		"410 of another":          {commonPatience, []step{{status: 410}}, 410, 1, 0, 0},
		"when it says":            {commonPatience, []step{{status: 429, after: "30"}, {status: 200}}, 200, 2, 30 * time.Second, 30 * time.Second},
		"over a minute":           {commonPatience, []step{{status: 429, after: "65"}, {status: 200}}, 200, 2, 65 * time.Second, 65 * time.Second},
		"too late":                {commonPatience, []step{{status: 429, after: "600"}, {status: 200}}, 429, 1, 0, 0},
		"at a time":               {commonPatience, []step{{status: 503, after: at(40 * time.Second)}, {status: 200}}, 200, 2, 40 * time.Second, 40 * time.Second},
		"at a time that is late":  {commonPatience, []step{{status: 503, after: at(time.Hour)}, {status: 200}}, 503, 1, 0, 0},
		"at a time that has been": {commonPatience, []step{{status: 503, after: at(-time.Hour)}, {status: 200}}, 200, 2, time.Second, 2 * time.Second},
		"nothing of a time":       {commonPatience, []step{{status: 503, after: "soon"}, {status: 200}}, 200, 2, time.Second, 2 * time.Second},
		"reset":                   {commonPatience, []step{{err: syscall.ECONNRESET}, {status: 200}}, 200, 2, time.Second, 2 * time.Second},
		"a name":                  {commonPatience, []step{{err: dialError(&net.DNSError{IsTemporary: true})}, {status: 200}}, 200, 2, time.Second, 2 * time.Second},
		"not reached":             {commonPatience, []step{{err: timeout}}, 0, tries, 4 * time.Second, 15 * time.Second},
		"no metadata service":     {instancePatience, []step{{err: timeout}}, 0, 2, time.Second, 2 * time.Second},
		"no way to it":            {instancePatience, []step{{err: dialError(syscall.EHOSTUNREACH)}}, 0, 2, time.Second, 2 * time.Second},
		"elsewhere":               {commonPatience, []step{{err: dialError(errNotLoopback)}}, 0, 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), Budget)
				defer cancel()
				by := &transport{steps: tc.steps}
				start := time.Now()
				got, err := (&Source{endpoints: endpoints{pause: firstPause}}).patiently(ctx, &http.Client{Transport: by}, tc.p, func() (*http.Request, error) {
					return http.NewRequest(http.MethodGet, "http://service.example", http.NoBody)
				})
				if got.status != tc.status || by.asked != tc.asked {
					t.Errorf("status %d after %d requests, %v", got.status, by.asked, err)
				}
				if took := time.Since(start); took < tc.least || took > tc.most {
					t.Errorf("it took %s", took)
				}
				if errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v: the service's words are lost", err)
				}
			})
		})
	}
}

// Who ends it hears what the service said.
func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, cancel)
		_, err := (&Source{endpoints: endpoints{pause: firstPause}}).patiently(ctx, &http.Client{Transport: &transport{steps: []step{{status: 429, after: "60"}}}}, commonPatience, func() (*http.Request, error) {
			return http.NewRequest(http.MethodGet, "http://service.example", http.NoBody)
		})
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "HTTP status 429") {
			t.Error(err)
		}
	})
}

// slowly is a network that says nothing for as long as a connection may take.
type slowly struct{ transport }

func (s *slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(connectBudget):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return s.transport.RoundTrip(r)
}

// Whoever has little time hears that nobody takes a connection, and not that the time is
// over; and a service whose answers take long is asked when it must be back.
func TestPatienceWithSlowAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		by     *slowly
		budget time.Duration
		asked  int
		took   time.Duration
	}{
		"a preflight": {&slowly{transport{steps: []step{{err: dialError(os.ErrDeadlineExceeded)}}}}, 13 * time.Second, 2, 12 * time.Second},
		"an update":   {&slowly{transport{steps: []step{{status: 410}}}}, Budget, 6, 80 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tc.budget)
				defer cancel()
				start, p := time.Now(), commonPatience
				p.busy = metadataBusy
				_, err := (&Source{endpoints: endpoints{pause: firstPause}}).patiently(ctx, &http.Client{Transport: tc.by}, p, func() (*http.Request, error) {
					return http.NewRequest(http.MethodGet, "http://service.example", http.NoBody)
				})
				if took := time.Since(start); err == nil || errors.Is(err, context.DeadlineExceeded) || tc.by.asked != tc.asked || took > tc.took {
					t.Errorf("%v after %s and %d requests", err, took, tc.by.asked)
				}
			})
		})
	}
}

// A server that is not who it should be is not asked twice.
func TestUntrustedIsFinal(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	resp, err := http.Get(s.URL)
	if err == nil {
		resp.Body.Close()
		t.Fatal("it is trusted")
	}
	if !final(err) {
		t.Error(err)
	}
}
