package serve

import (
	"net/http"
	"testing"
)

// A machine may ask how the cluster is reached when the assignment is known, and nothing
// else.
func TestResourceManager(t *testing.T) {
	m := NewResourceManager("owner", "machine", []byte("k"))
	m.Late = 1
	base := start(t, m)
	e := NewEntra("https://login.test", entraTenant)
	const cluster = "/subscriptions/x/resourceGroups/G/providers/Microsoft.ContainerService/managedClusters/one"
	const role = cluster + "/providers/Microsoft.Authorization/roleAssignments/1"
	for i, step := range []struct {
		who, method, path string
		status            int
	}{
		{"machine", "POST", cluster + "/listClusterUserCredential", 403},
		{"machine", "PUT", role, 403},
		{"owner", "GET", role, 404},
		{"owner", "PUT", role, 201},
		{"owner", "GET", role, 200},
		{"machine", "POST", cluster + "/listClusterUserCredential", 403},
		{"machine", "POST", cluster + "/listClusterUserCredential", 200},
		{"stranger", "POST", cluster + "/listClusterUserCredential", 403},
		{"owner", "DELETE", role, 204},
		{"machine", "POST", cluster + "/listClusterUserCredential", 403},
	} {
		token, err := e.Give(step.who, "", base, tokenLifetime)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequest(step.method, base+step.path+"?api-version=1", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != step.status {
			t.Errorf("%d: %+v: %d", i, step, resp.StatusCode)
		}
	}
	if len(m.Objects()) != 0 {
		t.Error(m.Objects())
	}
}
