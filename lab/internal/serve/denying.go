package serve

import (
	"net/http"
)

// Denying is an API server that knows nobody: every answer is 401 with the
// Status object of the real one, or another code.
type Denying struct {
	RequestLog
	handler http.Handler
}

// NewDenying answers each request with code and reason, such as 401 and
// "Unauthorized".
func NewDenying(code int, reason string) *Denying {
	d := &Denying{}
	d.handler = d.watch(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, code, map[string]any{
			"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{},
			"status": "Failure", "message": reason, "reason": reason, "code": code,
		})
	}))
	return d
}

func (d *Denying) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handler.ServeHTTP(w, r) }
