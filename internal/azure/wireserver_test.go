package azure

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/exitcode"
)

func caPEM(text string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(text)}))
}

// wire is a WireServer: what it says, by path and query.
type wire map[string]string

const (
	optInPath    = "/acms/isOptedInForRootCerts"
	legacyPath   = "/machine?comp=acmspackage&type=cacertificates&ext=json"
	rootsPath    = "/machine?comp=acmspackage&type=operationrequestsroot&ext=json"
	betweensPath = "/machine?comp=acmspackage&type=operationrequestsintermediate&ext=json"
)

// optedInWire has a root and what is between, as the service spells it.
func optedInWire() wire {
	return wire{
		optInPath:    "IsOptedInForRootCerts=true",
		rootsPath:    `{"OperationsInfo": [{"ResouceFileName": "root.v1.crt"}]}`,
		betweensPath: `{"OperationsInfo": [{"ResouceFileName": "between.crt"}]}`,
		"/machine?comp=acmspackage&type=root.v1&ext=crt": "a comment\r\n" + strings.ReplaceAll(caPEM("root"), "\n", "\r\n"),
		"/machine?comp=acmspackage&type=between&ext=crt": caPEM("between"),
	}
}

// with is the server with another answer.
func (w wire) with(path, says string) wire {
	w[path] = says
	return w
}

// serveWire says what was asked so far. refuse is how many requests are refused with
// what says, first of all.
func serveWire(t *testing.T, w wire, refuse int, says http.HandlerFunc) (wireServer, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.URL.RequestURI())
		text, known := w[r.URL.RequestURI()]
		switch {
		case len(asked) <= refuse:
			says(rw, r)
		case !known:
			rw.WriteHeader(http.StatusNotFound)
		default:
			fmt.Fprint(rw, text)
		}
	}))
	t.Cleanup(s.Close)
	c := direct(nil)
	t.Cleanup(c.CloseIdleConnections)
	return wireServer{url: s.URL, client: c, pause: time.Millisecond, budget: time.Minute, tell: func(CloudCAStep) {}}, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return asked
	}
}

func TestCloudCAs(t *testing.T) {
	limited := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "RequestRateLimitExceeded")
	}
	limitedWith200 := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"code":"RequestRateLimitExceeded"}`) }
	busy := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	both := []string{caPEM("root"), caPEM("between")}
	for name, c := range map[string]struct {
		wire   wire
		legacy bool
		refuse int
		says   http.HandlerFunc
		want   []string
		asked  int
	}{
		"opted in":                {wire: optedInWire(), want: both, asked: 5},
		"opted in, as JSON":       {wire: optedInWire().with(optInPath, `{"IsOptedInForRootCerts":true}`), want: both, asked: 5},
		"not opted in":            {wire: optedInWire().with(optInPath, "IsOptedInForRootCerts=false"), asked: 1},
		"another word":            {wire: optedInWire().with(optInPath, "NotIsOptedInForRootCerts=true"), asked: 1},
		"too much asked":          {wire: optedInWire(), refuse: 2, says: limited, want: both, asked: 7},
		"too much asked, kindly":  {wire: optedInWire(), refuse: 2, says: limitedWith200, want: both, asked: 7},
		"busy, as often as it is": {wire: optedInWire(), refuse: wireTries - 1, says: busy, want: both, asked: 4 + wireTries},
		"legacy": {wire: wire{legacyPath: `{"Certificates":[{"Name": "a.cer", "CertBody": "-----BEGIN CERTIFICATE-----\r\ncm9vdA==\r\n-----END CERTIFICATE-----"}]}`},
			legacy: true, want: []string{caPEM("root")}, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, asked := serveWire(t, c.wire, c.refuse, c.says)
			got, err := s.certificates(t.Context(), c.legacy)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || len(asked()) != c.asked {
				t.Errorf("asked %q: %s", asked(), diff)
			}
		})
	}
}

// TestCloudCASteps: each step is told of by its published name, with what came of it, and
// what was in the way of one that failed.
func TestCloudCASteps(t *testing.T) {
	lost := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
	for name, c := range map[string]struct {
		wire   wire
		legacy bool
		refuse int
		want   []string
	}{
		"opted in":     {wire: optedInWire(), want: []string{"isOptedIn", "optedIn IsOptedInForRootCerts=true", "retrieveCerts", "certCount downloaded 2 certificates"}},
		"not opted in": {wire: wire{optInPath: "no"}, want: []string{"isOptedIn", "notOptedIn IsOptedInForRootCerts=false"}},
		"no answer":    {wire: wire{}, refuse: wireTries, want: []string{"isOptedIn failed", "optInCheckFailed failed"}},
		"no list": {wire: wire{optInPath: "IsOptedInForRootCerts=true"},
			want: []string{"isOptedIn", "optedIn IsOptedInForRootCerts=true", "retrieveCerts failed", "retrieveCertsFailed failed"}},
		"legacy": {wire: wire{legacyPath: `{"Certificates":[{"Name": "a.cer", "CertBody": "-----BEGIN CERTIFICATE-----\r\ncm9vdA==\r\n-----END CERTIFICATE-----"}]}`},
			legacy: true, want: []string{"retrieveLegacyCerts"}},
		"legacy, and none": {wire: wire{legacyPath: `{}`}, legacy: true, want: []string{"retrieveLegacyCerts failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := serveWire(t, c.wire, c.refuse, lost)
			var got []string
			s.tell = func(step CloudCAStep) {
				text := strings.TrimSpace(step.Name + " " + step.Detail)
				if step.Err != nil {
					text += " failed"
				}
				if got = append(got, text); step.Start.IsZero() || step.End.Before(step.Start) {
					t.Errorf("%s: from %s to %s", text, step.Start, step.End)
				}
			}
			_, _ = s.certificates(t.Context(), c.legacy)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What can't be had or used is an error with its code, field and remedy, and no half of
// the certificates comes with it.
func TestCloudCARefused(t *testing.T) {
	var elsewhere string
	redirect := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere, http.StatusFound) }
	endless := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", maxWireAnswer+1)) }
	empty := func(http.ResponseWriter, *http.Request) {}
	many := strings.Repeat(`{"ResouceFileName":"a.crt"},`, maxCloudCAs) + `{"ResouceFileName":"a.crt"}`
	for name, c := range map[string]struct {
		wire         wire
		legacy       bool
		says         http.HandlerFunc
		cause, helps string
		asked        int
	}{
		"redirected":         {says: redirect, cause: "HTTP status 302", helps: "who runs the cloud", asked: wireTries},
		"empty":              {says: empty, cause: "an empty answer", helps: "closes 168.63.129.16", asked: wireTries},
		"without an end":     {says: endless, cause: "does not end", helps: "who runs the cloud", asked: 1},
		"no list":            {wire: optedInWire().with(rootsPath, "<html>"), cause: "the list can't be read", helps: "who runs the cloud", asked: 2},
		"empty list":         {wire: optedInWire().with(betweensPath, `{"OperationsInfo":[]}`), cause: "no certificate is named", helps: "who runs the cloud", asked: 3},
		"no such name":       {wire: optedInWire().with(rootsPath, `{"OperationsInfo":[{"ResouceFileName":"../x"}]}`), cause: "names no file", helps: "who runs the cloud", asked: 2},
		"too many":           {wire: optedInWire().with(rootsPath, `{"OperationsInfo":[`+many+`]}`), cause: "more than 500", helps: "who runs the cloud", asked: 2},
		"a key":              {wire: optedInWire().with("/machine?comp=acmspackage&type=between&ext=crt", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), cause: `"PRIVATE KEY" where a certificate`, helps: "who runs the cloud", asked: 5},
		"no certificate":     {wire: optedInWire().with("/machine?comp=acmspackage&type=between&ext=crt", "none"), cause: "no PEM certificate", helps: "who runs the cloud", asked: 5},
		"one that is absent": {wire: wire{optInPath: "IsOptedInForRootCerts=true", rootsPath: optedInWire()[rootsPath], betweensPath: optedInWire()[betweensPath]}, cause: "HTTP status 404", helps: "who runs the cloud", asked: 3 + wireTries},
		"legacy, no JSON":    {wire: wire{legacyPath: "x"}, legacy: true, cause: "the certificates can't be read", helps: "who runs the cloud", asked: 1},
		"legacy, none":       {wire: wire{legacyPath: `{"Certificates":[]}`}, legacy: true, cause: "no certificate is named", helps: "who runs the cloud", asked: 1},
		"legacy, no PEM":     {wire: wire{legacyPath: `{"Certificates":[{"Name":"a.cer","CertBody":"x"}]}`}, legacy: true, cause: `"a.cer": no PEM`, helps: "who runs the cloud", asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			refuse := 0
			if c.says != nil {
				refuse = wireTries
			}
			s, asked := serveWire(t, c.wire, refuse, c.says)
			elsewhere = s.url + rootsPath
			got, err := s.certificates(t.Context(), c.legacy)
			e, ok := errors.AsType[*exitcode.Error](err)
			if !ok || got != nil {
				t.Fatalf("%v, %v", got, err)
			}
			if e.Number != exitcode.Trust || e.At != "custom_cloud_config.custom_cloud_env_name" || !strings.Contains(e.Error(), c.cause) || !strings.Contains(e.Remedy, c.helps) {
				t.Errorf("code %d at %s: %v. %s", e.Number, e.At, e, e.Remedy)
			}
			if len(asked()) != c.asked {
				t.Errorf("asked %q", asked())
			}
		})
	}
}

// A server that takes a connection and says nothing costs the time that there is, and no more.
func TestCloudCADeadline(t *testing.T) {
	release := make(chan struct{})
	mute := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer mute.Close()
	defer close(release)
	s := wireServer{url: mute.URL, client: direct(nil), pause: time.Millisecond, budget: 50 * time.Millisecond, tell: func(CloudCAStep) {}}
	if _, err := s.certificates(t.Context(), false); exitcode.Of(err) != exitcode.Trust || !strings.Contains(err.Error(), "are over") {
		t.Errorf("%d: %v", exitcode.Of(err), err)
	}
}

// Nobody else is asked, whatever a name, a proxy of the environment or a route says.
func TestWireServerOnly(t *testing.T) {
	for address, want := range map[string]bool{
		"168.63.129.16:80": true, "168.63.129.16:32526": false, "168.63.129.17:80": false, "127.0.0.1:80": false, "[::1]:80": false, "[::ffff:168.63.129.16]:80": false, "wireserver:80": false,
	} {
		if err := wireServerOnly("tcp", address, nil); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	s, asked := serveWire(t, optedInWire(), 0, nil)
	s.client = direct(wireServerOnly)
	if _, err := s.certificates(t.Context(), false); !errors.Is(err, errNotWireServer) || len(asked()) != 0 {
		t.Errorf("%v, asked %q", err, asked())
	}
	if transport, ok := s.client.Transport.(*http.Transport); !ok || transport.Proxy != nil {
		t.Error("a proxy may be asked")
	}
}

func FuzzCloudCAs(f *testing.F) {
	for _, seed := range optedInWire() {
		f.Add([]byte(seed))
	}
	f.Add([]byte(`{"Certificates":[{"Name":"a.cer","CertBody":"-----BEGIN CERTIFICATE-----\r\nAAAA\r\n-----END CERTIFICATE-----"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		optedIn(body)
		if names, err := caNames(body); err == nil {
			for _, name := range names {
				if !isCAName(name) {
					t.Errorf("%q", name)
				}
			}
		}
		if found, err := legacyCAs(body); err == nil && len(found) == 0 {
			t.Error("no certificate and no error")
		}
		one, err := caText(string(body))
		if err != nil {
			return
		}
		if again, err := caText(one); err != nil || again != one {
			t.Errorf("%q becomes %q: %v", one, again, err)
		}
	})
}
