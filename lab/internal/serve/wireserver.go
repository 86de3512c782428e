package serve

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// WireServer is the smallest host that a machine's agent accepts: versions, a
// goal state, health reports; the certificate authorities of a cloud that has its
// own; and, for port 32526, the host plugin. Use NewWireServer, and serve it on both
// addresses.
type WireServer struct {
	RequestLog
	handler http.Handler

	mu    sync.Mutex
	lists map[string][]string // certificates by the name of their list
}

// wireVersion is the protocol that both sides have spoken since 2012.
const wireVersion = "2012-11-30"

// NewWireServer tells every machine that it has one role instance and nothing
// to do.
func NewWireServer() *WireServer {
	s := &WireServer{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.root)
	mux.HandleFunc("/machine", s.machine)
	mux.HandleFunc("/machine/", s.machine)
	mux.HandleFunc("GET /versions", hostPluginVersions)
	mux.HandleFunc("/health", accept)
	mux.HandleFunc("PUT /status", accept)
	mux.HandleFunc("GET /acms/isOptedInForRootCerts", s.optedIn)
	s.handler = s.watch(mux)
	return s
}

func (s *WireServer) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

func (s *WireServer) root(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("comp") != "versions" {
		http.NotFound(w, r)
		return
	}
	writeXML(w, `<Versions><Preferred><Version>`+wireVersion+`</Version></Preferred>`+
		`<Supported><Version>`+wireVersion+`</Version></Supported></Versions>`)
}

func (s *WireServer) machine(w http.ResponseWriter, r *http.Request) {
	switch comp := r.URL.Query().Get("comp"); {
	case comp == "acmspackage" && r.Method == http.MethodGet: // of the agent's protocol only by its address
		s.certificates(w, r.URL.Query().Get("type"), r.URL.Query().Get("ext"))
	case r.Header.Get("x-ms-version") != wireVersion:
		http.Error(w, "x-ms-version must be "+wireVersion, http.StatusBadRequest)
	case comp == "goalstate" && r.Method == http.MethodGet:
		writeXML(w, fmt.Sprintf(goalState, wireVersion))
	case comp == "health" && r.Method == http.MethodPost:
		accept(w, r)
	default:
		http.NotFound(w, r)
	}
}

const goalState = `<GoalState><Version>%s</Version><Incarnation>1</Incarnation>` +
	`<Machine><ExpectedState>Started</ExpectedState><LBProbePorts><Port>16001</Port></LBProbePorts></Machine>` +
	`<Container><ContainerId>00000000-0000-0000-0000-00000000000c</ContainerId><RoleInstanceList><RoleInstance>` +
	`<InstanceId>lab</InstanceId><State>Started</State></RoleInstance></RoleInstanceList></Container></GoalState>`

func writeXML(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	fmt.Fprint(w, `<?xml version="1.0" encoding="utf-8"?>`+body)
}

func hostPluginVersions(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, []string{"2015-09-01"})
}

// The lists of certificates, as the service calls them.
const (
	wireRoots   = "operationrequestsroot"
	wireBetween = "operationrequestsintermediate"
)

// Tell opts every machine in, and has it learn these certificate authorities, PEM each,
// from now on.
func (s *WireServer) Tell(roots, between []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists = map[string][]string{wireRoots: roots, wireBetween: between}
}

func (s *WireServer) optedIn(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(w, "IsOptedInForRootCerts=%t", s.lists != nil)
}

// certificates answers with a list of names, or with the certificate of one. A list that
// is not there, and a name that is in none, is not found.
func (s *WireServer) certificates(w http.ResponseWriter, kind, ext string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all, ok := s.lists[kind]; ok && ext == "json" {
		names := make([]map[string]string, len(all))
		for i := range all {
			names[i] = map[string]string{"ResouceFileName": fmt.Sprintf("%s-%d.crt", kind, i)} // spelt so
		}
		writeJSON(w, http.StatusOK, map[string]any{"OperationsInfo": names})
		return
	}
	list, number, _ := strings.Cut(kind, "-")
	if i, err := strconv.Atoi(number); err == nil && ext == "crt" && i >= 0 && i < len(s.lists[list]) {
		fmt.Fprint(w, s.lists[list][i])
		return
	}
	http.Error(w, "no such package", http.StatusNotFound)
}

func accept(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
