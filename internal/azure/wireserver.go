package azure

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

// The WireServer tells a virtual machine what its host knows: one address, on plain http,
// that never leaves the host.
const (
	wireAddress = "168.63.129.16"
	wireURL     = "http://" + wireAddress

	wireOptIn   = "/acms/isOptedInForRootCerts"
	wireLegacy  = "cacertificates"
	wireRoots   = "operationrequestsroot"
	wireBetween = "operationrequestsintermediate"
)

// How often it is asked, as published, and for how long, in all: it is on the machine's
// own host, and a run waits for it.
const (
	wireTries  = 10
	wirePause  = 3 * time.Second
	wireAnswer = 30 * time.Second
	wireBudget = 2 * time.Minute
)

// What a cloud may tell: more than any has, and no more than a trust store and the memory
// of a small machine take.
const (
	maxWireAnswer   = 2 << 20
	maxCloudCAs     = 500
	maxCloudCAName  = 255
	maxCloudCABytes = 2 << 20
)

// rateLimited is in an answer to who asks too much.
const rateLimited = "RequestRateLimitExceeded"

var errNotWireServer = errors.New("the address is not the WireServer's")

// wireServer is where certificates are asked for.
type wireServer struct {
	url    string
	client *http.Client
	pause  time.Duration
	budget time.Duration
	tell   func(CloudCAStep)
}

// CloudCAStep is a step on the way to a cloud's certificate authorities, by its published
// name: when it was, what came of it, and why it failed.
type CloudCAStep struct {
	Name       string
	Start, End time.Time
	Detail     string
	Err        error
}

// CloudCAs asks the machine's cloud for its certificate authorities, PEM each. legacy is a
// cloud that tells them to everybody; others tell who is opted in, and of a machine that
// is not none is returned. Nothing that is asked leaves the host, and no proxy or redirect
// is followed. tell is told of each step.
func CloudCAs(ctx context.Context, legacy bool, tell func(CloudCAStep)) ([]string, error) {
	c := direct(wireServerOnly)
	defer c.CloseIdleConnections()
	return wireServer{url: wireURL, client: c, pause: wirePause, budget: wireBudget, tell: tell}.certificates(ctx, legacy)
}

// wireServerOnly refuses every address but the one.
func wireServerOnly(_, address string, _ syscall.RawConn) error {
	if at, err := netip.ParseAddrPort(address); err != nil || at != netip.AddrPortFrom(netip.MustParseAddr(wireAddress), 80) {
		return fmt.Errorf("%s: %w", address, errNotWireServer)
	}
	return nil
}

func (w wireServer) certificates(ctx context.Context, legacy bool) ([]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, w.budget, errWireBudget)
	defer cancel()
	find := w.optedIn
	if legacy {
		find = w.legacy
	}
	found, err := find(ctx)
	if err != nil {
		return nil, wireFailure(err)
	}
	return found, nil
}

// step tells of a step, when it has ended.
func (w wireServer) step(name string, do func() error) error {
	s := CloudCAStep{Name: name, Start: time.Now()}
	s.Err = do()
	s.End = time.Now()
	w.tell(s)
	return s.Err
}

// came tells what came of a step: a detail, or an error.
func (w wireServer) came(name, detail string, err error) {
	now := time.Now()
	w.tell(CloudCAStep{Name: name, Start: now, End: now, Detail: detail, Err: err})
}

var errWireBudget = fmt.Errorf("the %s that there are for it are over", wireBudget)

func wireFailure(err error) error {
	const during = "ask the cloud (WireServer, " + wireAddress + ") for its certificate authorities"
	remedy := "Check that nothing on this machine or in its network closes " + wireAddress + ", port 80, to root: curl " + wireURL + wireOptIn +
		". It is asked since custom_cloud_config.custom_cloud_env_name says that the cloud has certificate authorities of its own."
	if answered(err) {
		remedy = "The WireServer answers, and with nothing that can be used: ask who runs the cloud. It is asked since custom_cloud_config.custom_cloud_env_name says that the cloud has certificate authorities of its own."
	}
	return &exitcode.Error{Number: exitcode.Trust, During: during, At: "custom_cloud_config.custom_cloud_env_name", Remedy: remedy, Err: fmt.Errorf("%s: %w", during, err)}
}

// answered says that somebody is there.
func answered(err error) bool {
	_, useless := errors.AsType[*wireAnswerError](err)
	_, refused := errors.AsType[*StatusError](err)
	return useless || refused || errors.Is(err, errEndless)
}

// wireAnswerError is an answer that is none.
type wireAnswerError struct {
	path string
	err  error
}

func (e *wireAnswerError) Error() string { return e.path + ": " + e.err.Error() }
func (e *wireAnswerError) Unwrap() error { return e.err }

func (w wireServer) legacy(ctx context.Context) (found []string, err error) {
	at := wirePackage(wireLegacy, "json")
	err = w.step("retrieveLegacyCerts", func() error {
		body, err := w.get(ctx, at)
		if err != nil {
			return err
		}
		if found, err = legacyCAs(body); err != nil {
			return &wireAnswerError{at, err}
		}
		return bounded(found)
	})
	return found, err
}

// optedIn asks whether the machine is, and then for the certificates of each list.
func (w wireServer) optedIn(ctx context.Context) (found []string, err error) {
	var body []byte
	err = w.step("isOptedIn", func() (err error) {
		body, err = w.get(ctx, wireOptIn)
		return err
	})
	switch {
	case err != nil:
		w.came("optInCheckFailed", "", err)
		return nil, err
	case !optedIn(body):
		w.came("notOptedIn", "IsOptedInForRootCerts=false", nil)
		return nil, nil
	}
	w.came("optedIn", "IsOptedInForRootCerts=true", nil)
	err = w.step("retrieveCerts", func() (err error) {
		found, err = w.listed(ctx)
		return err
	})
	if err != nil {
		w.came("retrieveCertsFailed", "", err)
		return nil, err
	}
	w.came("certCount", fmt.Sprintf("downloaded %d certificates", len(found)), nil)
	return found, nil
}

// listed are the certificates of both lists.
func (w wireServer) listed(ctx context.Context) ([]string, error) {
	var names []string
	for _, list := range []string{wireRoots, wireBetween} {
		at := wirePackage(list, "json")
		body, err := w.get(ctx, at)
		if err != nil {
			return nil, err
		}
		some, err := caNames(body)
		if err != nil {
			return nil, &wireAnswerError{at, err}
		}
		names = append(names, some...)
	}
	found, err := w.named(ctx, names)
	if err != nil {
		return nil, err
	}
	return found, bounded(found)
}

// named are the certificates of these names.
func (w wireServer) named(ctx context.Context, names []string) ([]string, error) {
	var found []string
	room := maxCloudCABytes
	for _, name := range names {
		ext := path.Ext(name)
		at := wirePackage(strings.TrimSuffix(name, ext), strings.TrimPrefix(ext, "."))
		body, err := w.get(ctx, at)
		if err != nil {
			return nil, err
		}
		one, err := caText(string(body))
		if room -= len(one); err == nil && room < 0 {
			err = errTooManyCAs
		}
		if err != nil {
			return nil, &wireAnswerError{at, err}
		}
		found = append(found, one)
	}
	return found, nil
}

func wirePackage(kind, ext string) string {
	return "/machine?comp=acmspackage&type=" + url.QueryEscape(kind) + "&ext=" + url.QueryEscape(ext)
}

// get asks until there is an answer, with pauses that grow where too much was asked.
func (w wireServer) get(ctx context.Context, at string) ([]byte, error) {
	pause := w.pause
	for n := 1; ; n++ {
		body, err := w.once(ctx, at)
		if err == nil || n == wireTries || final(err) || errors.Is(err, errNotWireServer) {
			return body, err
		}
		if e, ok := errors.AsType[*StatusError](err); ok && e.Code == rateLimited {
			pause *= 2
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w; %w", err, context.Cause(ctx))
		}
	}
}

func (w wireServer) once(ctx context.Context, at string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, wireAnswer)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+at, http.NoBody)
	if err != nil {
		return nil, err
	}
	got, err := askFor(w.client, req, maxWireAnswer)
	switch {
	case err != nil:
		return nil, err
	case strings.Contains(string(got.body), rateLimited):
		return nil, &StatusError{Status: got.status, Code: rateLimited}
	case got.status != http.StatusOK:
		return nil, &StatusError{Status: got.status, Text: line(string(got.body))}
	case len(got.body) == 0:
		return nil, fmt.Errorf("%s: an empty answer", at)
	}
	return got.body, nil
}

var optedInText = lazyregexp.New(`(?i)\bIsOptedInForRootCerts"?\s*[=:]\s*"?true\b`)

// optedIn reads an answer as the published scripts do, which look for the words in it.
func optedIn(body []byte) bool { return optedInText().Match(body) }

var (
	errNoCAs      = errors.New("no certificate is named")
	errTooManyCAs = fmt.Errorf("more than %d certificates or %d bytes of them", maxCloudCAs, maxCloudCABytes)
)

// caNames are the files of a list, in its order. (The service spells the key so.)
func caNames(body []byte) ([]string, error) {
	var list struct {
		Operations []struct {
			Name string `json:"ResouceFileName"`
		} `json:"OperationsInfo"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("the list can't be read: %w", err)
	}
	var names []string
	for _, o := range list.Operations {
		if !isCAName(o.Name) {
			return nil, fmt.Errorf("%q names no file of a certificate", line(o.Name))
		}
		names = append(names, o.Name)
	}
	if len(names) == 0 {
		return nil, errNoCAs
	}
	if len(names) > maxCloudCAs {
		return nil, errTooManyCAs
	}
	return names, nil
}

// isCAName says whether a name has a type after its last dot: it is asked for by both.
func isCAName(name string) bool {
	ext := path.Ext(name)
	return len(name) <= maxCloudCAName && len(ext) > 1 && len(ext) < len(name) && !strings.ContainsAny(name, "/\\\r\n\x00")
}

// legacyCAs are the certificates of the answer that has all of them.
func legacyCAs(body []byte) ([]string, error) {
	var said struct {
		Certificates []struct{ Name, CertBody string }
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return nil, fmt.Errorf("the certificates can't be read: %w", err)
	}
	var found []string
	for _, c := range said.Certificates {
		one, err := caText(c.CertBody)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line(c.Name), err)
		}
		found = append(found, one)
	}
	if len(found) == 0 {
		return nil, errNoCAs
	}
	return found, nil
}

// caText is the certificates in a text, and nothing else of it.
func caText(text string) (string, error) {
	var out strings.Builder
	rest := []byte(text)
	for block, left := pem.Decode(rest); block != nil; block, left = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" || len(block.Bytes) == 0 {
			return "", fmt.Errorf("a %q where a certificate is expected", line(block.Type))
		}
		out.Write(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
		rest = left
	}
	if out.Len() == 0 {
		return "", errors.New("no PEM certificate in it")
	}
	return out.String(), nil
}

// bounded refuses more certificates than a trust store is made for.
func bounded(found []string) error {
	n := 0
	for _, one := range found {
		n += len(one)
	}
	if len(found) > maxCloudCAs || n > maxCloudCABytes {
		return &wireAnswerError{"certificates", errTooManyCAs}
	}
	return nil
}
