package serve

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const (
	armSubscription = "11111111-1111-1111-1111-111111111111"
	armMachine      = "33333333-3333-3333-3333-333333333333"
	armCluster      = "/subscriptions/" + armSubscription + "/resourceGroups/G/providers/Microsoft.ContainerService/managedClusters/one"
	armRole         = armCluster + "/providers/Microsoft.Authorization/roleAssignments/44444444-4444-4444-4444-444444444444"
	armOtherRole    = armCluster + "/providers/Microsoft.Authorization/roleAssignments/55555555-5555-5555-5555-555555555555"
	armBox          = "/subscriptions/" + armSubscription + "/resourceGroups/G/providers/Microsoft.HybridCompute/machines/box"
	armGives        = `{"properties":{"principalId":"` + armMachine + `","principalType":"ServicePrincipal","roleDefinitionId":"/subscriptions/` + armSubscription +
		`/providers/Microsoft.Authorization/roleDefinitions/4abbcc35-e782-43d8-92c5-2d3f1bd2253f"}}`
	armRegisters = `{"location":"l","identity":{"type":"SystemAssigned"},"tags":{"a":"b"}}`
)

// armSteps are asked one after the other.
var armSteps = []struct {
	who, method, path, version, body string
	status                           int
	code                             string
}{
	{armMachine, "POST", armCluster + "/listClusterUserCredential", "2024-02-01", "", 403, "AuthorizationFailed"},
	{armMachine, "PUT", armRole, "2022-04-01", armGives, 403, "AuthorizationFailed"},
	{"", "GET", armRole, "2022-04-01", "", 401, "AuthenticationFailed"},
	{"owner", "GET", armRole, "", "", 400, "MissingApiVersionParameter"},
	{"owner", "GET", armRole, "1", "", 400, "InvalidApiVersionParameter"},
	{"owner", "GET", armRole, "2024-02-01", "", 400, "NoRegisteredProviderFound"},
	{"owner", "GET", armRole, "2022-04-01", "", 404, "RoleAssignmentNotFound"},
	{"owner", "PUT", armRole, "2022-04-01", "", 400, "InvalidRequestContent"},
	{"owner", "PUT", armRole, "2022-04-01", `{"properties":{}}`, 400, "InvalidPrincipalId"},
	{"owner", "PUT", armRole, "2022-04-01", strings.Replace(armGives, "/subscriptions/", "/", 1), 400, "InvalidRoleDefinitionId"},
	{"owner", "PUT", armRole, "2022-04-01", strings.Replace(armGives, `"principalType":"ServicePrincipal",`, "", 1), 400, "PrincipalNotFound"},
	{"owner", "PUT", armCluster + "/providers/Microsoft.Authorization/roleAssignments/one", "2022-04-01", armGives, 400, "InvalidRoleAssignmentId"},
	{"owner", "PUT", armRole, "2022-04-01", armGives, 201, ""},
	{"owner", "PUT", armRole, "2022-04-01", armGives, 409, "RoleAssignmentExists"},
	{"owner", "PUT", armOtherRole, "2022-04-01", armGives, 409, "RoleAssignmentExists"},
	{"owner", "GET", armRole, "2022-04-01", "", 200, ""},
	{armMachine, "POST", armCluster + "/listClusterUserCredential", "2024-02-01", "", 403, "AuthorizationFailed"},
	{armMachine, "POST", armCluster + "/listClusterUserCredential", "2024-02-01", "", 200, "kubeconfigs"},
	{"stranger", "POST", armCluster + "/listClusterUserCredential", "2024-02-01", "", 403, "AuthorizationFailed"},
	{armMachine, "GET", armCluster + "/providers/Microsoft.Authorization/permissions", "2022-04-01", "", 200, "listClusterUserCredential/action"},
	{"stranger", "GET", armCluster + "/providers/Microsoft.Authorization/permissions", "2022-04-01", "", 200, `"value":[]`},
	{"owner", "DELETE", armRole, "2022-04-01", "", 204, ""},
	{armMachine, "POST", armCluster + "/listClusterUserCredential", "2024-02-01", "", 403, "AuthorizationFailed"},
	{"owner", "PUT", armBox, "2022-03-10", `{}`, 400, "LocationRequired"},
	{"owner", "PUT", armBox, "2022-03-10", `{"location":"l"}`, 400, "InvalidIdentityType"},
	{"owner", "PUT", armBox, "2022-03-10", armRegisters, 201, ""},
	{"owner", "GET", armBox, "2022-03-10", "", 200, `"tags":{"a":"b"}`},
	{"owner", "DELETE", armBox, "2022-03-10", "", 204, ""},
	{"owner", "GET", armBox, "2022-03-10", "", 404, "ResourceNotFound"},
}

// ask makes one request of somebody, and returns status and body.
func ask(t *testing.T, base, who, method, path, version, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, base+path+"?api-version="+version, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if who != "" {
		token, err := NewEntra("https://login.test", entraTenant).Give(who, "", base, tokenLifetime)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// A machine may ask how the cluster is reached when the assignment is known, and nothing
// else; what the real one refuses is refused.
func TestResourceManager(t *testing.T) {
	m := NewResourceManager("owner", armMachine, []byte("k"))
	m.Late = 1
	base := start(t, m)
	for i, step := range armSteps {
		if status, body := ask(t, base, step.who, step.method, step.path, step.version, step.body); status != step.status || !strings.Contains(body, step.code) {
			t.Errorf("%d: %+v: %d %s", i, step, status, body)
		}
	}
	if len(m.Objects()) != 0 {
		t.Error(m.Objects())
	}
}

// What the owner's role leaves out is told and refused, and nothing else is.
func TestResourceManagerWithholds(t *testing.T) {
	m := NewResourceManager("owner", armMachine, []byte("k"))
	base := start(t, m)
	m.Withhold("Microsoft.HybridCompute/machines/write", "Microsoft.Authorization/roleAssignments/delete")
	for _, step := range []struct {
		method, path, version, body string
		status                      int
		says                        string
	}{
		{"GET", armCluster + "/providers/Microsoft.Authorization/permissions", "2022-04-01", "", 200, `"notActions":["Microsoft.HybridCompute/machines/write","Microsoft.Authorization/roleAssignments/delete"]`},
		{"PUT", armBox, "2022-03-10", armRegisters, 403, "AuthorizationFailed"},
		{"GET", armBox, "2022-03-10", "", 404, "ResourceNotFound"},
		{"PUT", armRole, "2022-04-01", armGives, 201, ""},
		{"DELETE", armRole, "2022-04-01", "", 403, "AuthorizationFailed"},
	} {
		if status, body := ask(t, base, "owner", step.method, step.path, step.version, step.body); status != step.status || !strings.Contains(body, step.says) {
			t.Errorf("%+v: %d %s", step, status, body)
		}
	}
	m.Withhold()
	if status, body := ask(t, base, "owner", "PUT", armBox, "2022-03-10", armRegisters); status != 201 {
		t.Errorf("%d %s", status, body)
	}
	m.Assign(armCluster, "another")
	if status, body := ask(t, base, "another", "POST", armCluster+"/listClusterUserCredential", "2024-02-01", ""); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}

// TestResourceManagerIsSlow: a request too many is put off, and what is deleted goes while
// somebody asks.
func TestResourceManagerIsSlow(t *testing.T) {
	m := NewResourceManager("owner", armMachine, nil)
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	ask(t, s.URL, "owner", "PUT", armBox, "2022-03-10", armRegisters)
	m.Busy, m.Slow = 1, true
	operation := "/subscriptions/" + armSubscription + operations + "box"
	for _, step := range []struct {
		method, path string
		status       int
	}{{"DELETE", armBox, 429}, {"DELETE", armBox, 202}, {"GET", armBox, 200}, {"GET", operation, 202}, {"GET", armBox, 404}, {"GET", operation, 204}, {"GET", operation + "x", 404}} {
		if status, body := ask(t, s.URL, "owner", step.method, step.path, "2022-03-10", ""); status != step.status {
			t.Errorf("%s %s: %d %s, want %d", step.method, step.path, status, body, step.status)
		}
	}
}
