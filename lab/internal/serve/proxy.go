package serve

import (
	"encoding/base64"
	"net/http"
)

// Proxy is an HTTP proxy that wants a user and a password. It knows some hosts
// by name, which nobody else finds, and connects to none.
type Proxy struct {
	RequestLog
	hosts   map[string]http.Handler
	want    string
	handler http.Handler
}

// NewProxy answers for the hosts (host or host:port) whoever knows the password.
func NewProxy(user, password string, hosts map[string]http.Handler) *Proxy {
	p := &Proxy{hosts: hosts, want: "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))}
	p.handler = p.watch(http.HandlerFunc(p.answer))
	return p
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

func (p *Proxy) answer(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Proxy-Authorization") != p.want {
		w.Header().Set("Proxy-Authenticate", `Basic realm="lab"`)
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	h := p.hosts[r.Host]
	if r.Method == http.MethodConnect || h == nil {
		http.Error(w, "the proxy knows no "+r.Host, http.StatusBadGateway)
		return
	}
	h.ServeHTTP(w, r)
}
