package serve

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// ResourceManager is an Azure Resource Manager: machines of Azure Arc, role assignments,
// permissions, and how one cluster is reached. Who shows a token is who its claim oid
// says. It refuses what the real one refuses. Use NewResourceManager.
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
	// Busy is how many requests are asked to come again in a second.
	Busy int
	// Slow: what is deleted goes while somebody asks for the operation.
	Slow bool

	mu      sync.Mutex
	objects map[string]resource
	// withheld are actions that the owner's role leaves out.
	withheld []string
	// going are operations under way, with the resource that each deletes.
	going   map[string]string
	handler http.Handler
}

// resource is the body of the request that made it.
type resource struct {
	Location   string            `json:"location"`
	Tags       map[string]string `json:"tags"`
	Identity   struct{ Type string }
	Properties struct {
		PrincipalID, PrincipalType, RoleDefinitionID string
	} `json:"properties"`
}

// NewResourceManager is one without resources.
func NewResourceManager(owner, machine string, kubeconfig []byte) *ResourceManager {
	m := &ResourceManager{Owner: owner, Machine: machine, Kubeconfig: kubeconfig, objects: map[string]resource{}, going: map[string]string{}}
	m.handler = m.watch(http.HandlerFunc(m.answer))
	return m
}

func (m *ResourceManager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.handler.ServeHTTP(w, r)
}

// Objects are the resource ids of what is there, in lower case and in order.
func (m *ResourceManager) Objects() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.objects))
}

// Tags are those of a resource.
func (m *ResourceManager) Tags(id string) map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.objects[strings.ToLower(id)].Tags
}

// Withhold takes actions out of the owner's role, and gives those of before back.
func (m *ResourceManager) Withhold(actions ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.withheld = actions
}

// Assign gives somebody the role of a cluster's users, as another owner would.
func (m *ResourceManager) Assign(cluster, principal string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var o resource
	o.Properties.PrincipalID, o.Properties.PrincipalType = principal, "ServicePrincipal"
	m.objects[strings.ToLower(cluster)+"/providers/microsoft.authorization/roleassignments/"+principal] = o
}

func (m *ResourceManager) answer(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, who := strings.ToLower(r.URL.Path), objectOf(r)
	cluster, asked := strings.CutSuffix(id, "/listclusterusercredential")
	scope, permissions := strings.CutSuffix(id, "/providers/microsoft.authorization/permissions")
	if code := versionError(r.URL.Path, r.URL.Query().Get("api-version")); code != "" {
		refuseAzure(w, http.StatusBadRequest, code)
		return
	}
	switch {
	case m.Busy > 0:
		m.Busy--
		w.Header().Set("Retry-After", "1")
		refuseAzure(w, http.StatusTooManyRequests, "SubscriptionRequestsThrottled")
	case who == "":
		refuseAzure(w, http.StatusUnauthorized, "AuthenticationFailed")
	case permissions && r.Method == http.MethodGet:
		writeJSON(w, http.StatusOK, map[string]any{"value": m.permissions(scope, who)})
	case asked && r.Method == http.MethodPost && !m.mayUse(cluster, who) || !asked && (who != m.Owner || m.withholds(r.Method, id)):
		refuseAzure(w, http.StatusForbidden, "AuthorizationFailed")
	case asked:
		writeJSON(w, http.StatusOK, map[string]any{"kubeconfigs": []map[string]string{{"name": "clusterUser", "value": base64.StdEncoding.EncodeToString(m.Kubeconfig)}}})
	case r.Method == http.MethodPut:
		m.put(w, r, id)
	case r.Method == http.MethodDelete:
		m.remove(w, r, id)
	case strings.Contains(id, operations):
		m.operation(w, r, id)
	default:
		m.get(w, r, id)
	}
}

// operations are in the ids of what goes on.
const operations = "/providers/microsoft.hybridcompute/locations/westeurope/operationstatus/"

func (m *ResourceManager) remove(w http.ResponseWriter, r *http.Request, id string) {
	before, name, machine := cutLast(id, "/providers/microsoft.hybridcompute/machines/")
	if subscription, _, ok := strings.Cut(before, "/resourcegroups/"); ok && machine && m.Slow {
		at := subscription + operations + name
		m.going[at] = id
		later(w, r, at)
		return
	}
	delete(m.objects, id)
	w.WriteHeader(http.StatusNoContent)
}

// operation tells once that it goes on, and then that it has ended.
func (m *ResourceManager) operation(w http.ResponseWriter, r *http.Request, id string) {
	switch gone, goes := m.going[id]; {
	case !goes:
		refuseAzure(w, http.StatusNotFound, "NotFound")
	case m.objects[gone].Location != "":
		delete(m.objects, gone)
		later(w, r, id)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// later says where the operation is asked for.
func later(w http.ResponseWriter, r *http.Request, at string) {
	w.Header().Set("Location", "https://"+r.Host+at+"?api-version="+r.URL.Query().Get("api-version"))
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusAccepted)
}

func (m *ResourceManager) get(w http.ResponseWriter, r *http.Request, id string) {
	o, ok := m.objects[id]
	switch {
	case !ok && strings.Contains(id, "/roleassignments/"):
		refuseAzure(w, http.StatusNotFound, "RoleAssignmentNotFound")
	case !ok:
		refuseAzure(w, http.StatusNotFound, "ResourceNotFound")
	default:
		writeJSON(w, http.StatusOK, map[string]any{"id": r.URL.Path, "location": o.Location, "tags": o.Tags,
			"identity": map[string]string{"type": "SystemAssigned", "principalId": m.Machine}, "properties": map[string]string{"status": "Connected"}})
	}
}

// apiVersions are those of the providers that are known here.
var apiVersions = map[string][]string{
	"microsoft.hybridcompute":    {"2022-03-10", "2022-12-27", "2024-07-10"},
	"microsoft.authorization":    {"2022-04-01"},
	"microsoft.containerservice": {"2024-02-01", "2025-10-01"},
}

var versionForm = regexp.MustCompile(`^\d{4}-\d\d-\d\d(-preview)?$`)

// versionError is the code with which a version is refused; "" where it is taken.
func versionError(path, version string) string {
	_, last, _ := cutLast(strings.ToLower(path), "/providers/")
	provider, _, _ := strings.Cut(last, "/")
	switch {
	case version == "":
		return "MissingApiVersionParameter"
	case !versionForm.MatchString(version):
		return "InvalidApiVersionParameter"
	case !slices.Contains(apiVersions[provider], version):
		return "NoRegisteredProviderFound"
	}
	return ""
}

// put makes a resource of a body that fits.
func (m *ResourceManager) put(w http.ResponseWriter, r *http.Request, id string) {
	var o resource
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		refuseAzure(w, http.StatusBadRequest, "InvalidRequestContent")
		return
	}
	status, code := m.machineError(o)
	if scope, name, ok := cutLast(id, "/providers/microsoft.authorization/roleassignments/"); ok {
		status, code = m.assignmentError(scope, name, o)
	}
	if code != "" {
		refuseAzure(w, status, code)
		return
	}
	m.objects[id] = o
	writeJSON(w, http.StatusCreated, map[string]any{"id": r.URL.Path})
}

func (m *ResourceManager) machineError(o resource) (status int, code string) {
	switch {
	case o.Location == "":
		return http.StatusBadRequest, "LocationRequired"
	case o.Identity.Type != "SystemAssigned":
		return http.StatusBadRequest, "InvalidIdentityType"
	case len(o.Tags) > 50:
		return http.StatusBadRequest, "InvalidTags"
	}
	return 0, ""
}

var (
	guidForm = regexp.MustCompile(`^(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	roleForm = regexp.MustCompile(`^(?i)/subscriptions/[0-9a-f-]{36}/providers/Microsoft\.Authorization/roleDefinitions/[0-9a-f-]{36}$`)
)

// assignmentError: a principal that is new is found only where its type is said, and it
// has a role in a scope once.
func (m *ResourceManager) assignmentError(scope, name string, o resource) (status int, code string) {
	p := o.Properties
	switch {
	case !guidForm.MatchString(name):
		return http.StatusBadRequest, "InvalidRoleAssignmentId"
	case !guidForm.MatchString(p.PrincipalID):
		return http.StatusBadRequest, "InvalidPrincipalId"
	case !roleForm.MatchString(p.RoleDefinitionID):
		return http.StatusBadRequest, "InvalidRoleDefinitionId"
	case p.PrincipalType != "ServicePrincipal":
		return http.StatusBadRequest, "PrincipalNotFound"
	}
	for id, other := range m.objects {
		if strings.HasPrefix(id, scope+"/providers/microsoft.authorization/roleassignments/") &&
			strings.EqualFold(other.Properties.PrincipalID, p.PrincipalID) && strings.EqualFold(other.Properties.RoleDefinitionID, p.RoleDefinitionID) {
			return http.StatusConflict, "RoleAssignmentExists"
		}
	}
	return 0, ""
}

// permissions are those of whoever asks.
func (m *ResourceManager) permissions(scope, who string) []map[string]any {
	out := []map[string]any{}
	if who == m.Owner {
		return append(out, map[string]any{"actions": []string{"*"}, "notActions": append([]string{}, m.withheld...)})
	}
	for range m.assigned(scope, who) {
		out = append(out, map[string]any{"actions": []string{"Microsoft.ContainerService/managedClusters/listClusterUserCredential/action", "Microsoft.ContainerService/managedClusters/read"}, "notActions": []string{}})
	}
	return out
}

// verbs are those of actions.
var verbs = map[string]string{http.MethodGet: "read", http.MethodPut: "write", http.MethodDelete: "delete"}

// withholds says whether the owner may not do something with a resource.
func (m *ResourceManager) withholds(method, id string) bool {
	_, last, _ := cutLast(id, "/providers/")
	kind, _, _ := cutLast(last, "/")
	return slices.ContainsFunc(m.withheld, func(a string) bool { return strings.EqualFold(a, kind+"/"+verbs[method]) })
}

// assigned are the assignments in a scope to somebody.
func (m *ResourceManager) assigned(scope, who string) (ids []string) {
	for id, o := range m.objects {
		if strings.HasPrefix(id, scope+"/providers/microsoft.authorization/roleassignments/") && strings.EqualFold(o.Properties.PrincipalID, who) {
			ids = append(ids, id)
		}
	}
	return ids
}

// mayUse: a machine may by an assignment on the cluster, once that is known.
func (m *ResourceManager) mayUse(cluster, who string) bool {
	if who == m.Owner {
		return true
	}
	if len(m.assigned(cluster, who)) == 0 {
		return false
	}
	m.Late--
	return m.Late < 0
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
