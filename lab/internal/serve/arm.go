package serve

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
)

// ResourceManager is an Azure Resource Manager: machines of Azure Arc, role assignments,
// and how one cluster is reached. Who shows a token is who its claim oid says. Use
// NewResourceManager.
//
// Source of its rules: the public REST reference of Microsoft.HybridCompute,
// Microsoft.Authorization and Microsoft.ContainerService.
type ResourceManager struct {
	RequestLog
	// Owner may do everything, Machine is the identity that machines get.
	Owner, Machine string
	// Kubeconfig is what the cluster's users are given.
	Kubeconfig []byte
	// Late is how many requests an assignment is not known to yet.
	Late int

	mu      sync.Mutex
	objects map[string]bool
	handler http.Handler
}

// NewResourceManager is one without resources.
func NewResourceManager(owner, machine string, kubeconfig []byte) *ResourceManager {
	m := &ResourceManager{Owner: owner, Machine: machine, Kubeconfig: kubeconfig, objects: map[string]bool{}}
	m.handler = m.watch(http.HandlerFunc(m.answer))
	return m
}

func (m *ResourceManager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.handler.ServeHTTP(w, r)
}

// Objects are the resource ids of what is there, in lower case.
func (m *ResourceManager) Objects() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for id := range m.objects {
		out = append(out, id)
	}
	return out
}

func (m *ResourceManager) answer(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, who := strings.ToLower(r.URL.Path), objectOf(r)
	cluster, asked := strings.CutSuffix(id, "/listclusterusercredential")
	switch {
	case r.URL.Query().Get("api-version") == "":
		refuseAzure(w, http.StatusBadRequest, "MissingApiVersionParameter")
	case asked && r.Method == http.MethodPost && !m.mayUse(cluster, who) || !asked && who != m.Owner:
		refuseAzure(w, http.StatusForbidden, "AuthorizationFailed")
	case asked:
		writeJSON(w, http.StatusOK, map[string]any{"kubeconfigs": []map[string]string{{"name": "clusterUser", "value": base64.StdEncoding.EncodeToString(m.Kubeconfig)}}})
	case r.Method == http.MethodPut:
		m.objects[id] = true
		writeJSON(w, http.StatusCreated, map[string]any{"id": r.URL.Path})
	case r.Method == http.MethodDelete:
		delete(m.objects, id)
		w.WriteHeader(http.StatusNoContent)
	case !m.objects[id]:
		refuseAzure(w, http.StatusNotFound, "ResourceNotFound")
	default:
		writeJSON(w, http.StatusOK, map[string]any{"id": r.URL.Path, "identity": map[string]string{"principalId": m.Machine}, "properties": map[string]string{"status": "Connected"}})
	}
}

// mayUse: a machine may by an assignment on the cluster, once that is known.
func (m *ResourceManager) mayUse(cluster, who string) bool {
	if who == m.Owner {
		return true
	}
	for id := range m.objects {
		if who == m.Machine && strings.HasPrefix(id, cluster+"/providers/microsoft.authorization/roleassignments/") {
			m.Late--
			return m.Late < 0
		}
	}
	return false
}

func refuseAzure(w http.ResponseWriter, status int, code string) {
	writeJSON(w, status, map[string]any{"error": map[string]string{"code": code, "message": "refused"}})
}

// objectOf is the claim oid of the token that a request shows.
func objectOf(r *http.Request) string {
	parts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	var claims struct{ OID string }
	if len(parts) == 3 {
		if text, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
			_ = json.Unmarshal(text, &claims) // who says nothing is nobody
		}
	}
	return claims.OID
}
