package serve

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync"
)

// Where a machine in Azure finds its services.
const (
	IMDSAddress       = "169.254.169.254:80"
	WireServerAddress = "168.63.129.16:80"
	HostPluginAddress = "168.63.129.16:32526"
)

// Metadata is an instance metadata service for all machines of the lab: it
// tells them apart by their address. Use NewMetadata.
//
// Source of its rules: the public documentation of the Azure Instance Metadata
// Service.
type Metadata struct {
	RequestLog
	handler http.Handler
	tokens  *tokenIssuer
	entra   *Entra // nil: the service signs itself

	mu        sync.Mutex
	fallback  Instance
	instances map[netip.Addr]Instance
	identity  map[string]Identity
	failures  []int
}

// NewMetadata answers with fallback where SetInstance was not called.
func NewMetadata(fallback Instance) *Metadata {
	m := &Metadata{
		fallback: fallback, tokens: newTokenIssuer(),
		instances: map[netip.Addr]Instance{}, identity: map[string]Identity{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metadata/versions", m.versions)
	mux.HandleFunc("GET /metadata/instance", m.instance)
	mux.HandleFunc("GET /metadata/instance/{path...}", m.instance)
	mux.HandleFunc("GET /metadata/attested/document", m.attested)
	mux.HandleFunc("GET /metadata/identity/oauth2/token", m.token)
	m.handler = m.watch(m.guard(mux))
	return m
}

// SetInstance says what the machine with this address learns.
func (m *Metadata) SetInstance(addr netip.Addr, i Instance) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.instances[addr.Unmap()] = i
}

// Fail answers the next n requests with status, 429 or 503 for example.
func (m *Metadata) Fail(n, status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range n {
		m.failures = append(m.failures, status)
	}
}

// Heal takes back what of Fail has not hit yet.
func (m *Metadata) Heal() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failures = nil
}

func (m *Metadata) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.handler.ServeHTTP(w, r) }

var apiVersion = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)

// guard refuses what the real service refuses. It protects against requests
// that a client was tricked into: they can't set the header, and proxies add
// theirs.
func (m *Metadata) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		version := r.URL.Query().Get("api-version")
		switch status := m.failure(); {
		case status != 0:
			refuse(w, status, http.StatusText(status))
		case r.Header.Get("X-Forwarded-For") != "":
			refuse(w, http.StatusBadRequest, "Bad request. X-Forwarded-For is not allowed")
		case !strings.EqualFold(r.Header.Get("Metadata"), "true"):
			refuse(w, http.StatusBadRequest, "Bad request. Required metadata header not specified or not correct")
		case r.URL.Path != "/metadata/versions" && !apiVersion.MatchString(version):
			refuse(w, http.StatusBadRequest, "Bad request. api-version is invalid or was not specified in the request.")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (m *Metadata) failure() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.failures) == 0 {
		return 0
	}
	status := m.failures[0]
	m.failures = m.failures[1:]
	return status
}

func refuse(w http.ResponseWriter, status int, reason string) {
	writeJSON(w, status, map[string]any{"error": reason, "newest-versions": newestVersions})
}

var newestVersions = []string{"2025-04-07", "2023-11-15", "2021-12-13"}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

func (m *Metadata) versions(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"apiVersions": append([]string{"2017-04-02", "2021-02-01"}, newestVersions...)})
}

// instance answers for the whole document or a part of it. A part that is a
// single value is given as text, and only so.
func (m *Metadata) instance(w http.ResponseWriter, r *http.Request) {
	part, ok := m.of(r).part(r.PathValue("path"))
	format := r.URL.Query().Get("format")
	switch {
	case !ok:
		refuse(w, http.StatusNotFound, "Not found")
	case isContainer(part) && (format == "" || format == "json"):
		writeJSON(w, http.StatusOK, part)
	case !isContainer(part) && format == "text":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprint(w, part)
	case !isContainer(part):
		refuse(w, http.StatusBadRequest, "Bad request. Use format=text for a single value")
	default:
		refuse(w, http.StatusBadRequest, "Bad request. Only format=json is served for an object")
	}
}

func (m *Metadata) of(r *http.Request) Instance {
	m.mu.Lock()
	defer m.mu.Unlock()
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return m.fallback
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return m.fallback
	}
	if i, ok := m.instances[addr.Unmap()]; ok {
		return i
	}
	return m.fallback
}
