package serve

import (
	"fmt"
	"net/http"
)

// WireServer is the smallest host that a machine's agent accepts: versions, a
// goal state, health reports; and, for port 32526, the host plugin. Use
// NewWireServer, and serve it on both addresses.
type WireServer struct {
	RequestLog
	handler http.Handler
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
	mux.HandleFunc("GET /acms/isOptedInForRootCerts", notOptedIn)
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

func notOptedIn(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, "IsOptedInForRootCerts=false")
}

func accept(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
