package provision

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/host/memory"
)

// TestSettings: a cluster is asked with what the machine has, and where it says nothing,
// kubelet keeps what it has.
func TestSettings(t *testing.T) {
	const (
		node  = "Bearer node"
		token = "Bearer abcdef.0123456789abcdef"
	)
	var asked []string
	may := map[string]bool{}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		if !may[r.Header.Get("Authorization")] {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`)
			return
		}
		fmt.Fprint(w, `{"kind":"ConfigMap","apiVersion":"v1","data":{"kubelet":"clusterDNS: [10.96.0.10]\nclusterDomain: told.example\ncgroupDriver: systemd\n"}}`)
	}))
	defer s.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	kubeconfig := "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n" +
		"clusters: [{name: x, cluster: {server: \"" + s.URL + "\"}}]\nusers: [{name: x, user: {token: node}}]\n"
	const known = `{"clusterDNS": ["10.1.1.1"], "clusterDomain": "known.example", "cgroupDriver": "cgroupfs"}`
	told := &component.ClusterSettings{DNS: []string{"10.96.0.10"}, Domain: "told.example", CgroupDriver: "systemd"}
	was := &component.ClusterSettings{DNS: []string{"10.1.1.1"}, Domain: "known.example", CgroupDriver: "cgroupfs"}
	mixed := &component.ClusterSettings{DNS: []string{"10.96.0.10"}, Domain: "told.example", CgroupDriver: "cgroupfs"}
	for _, tc := range []struct {
		name  string
		files map[string]string
		may   string
		asked []string
		want  *component.ClusterSettings
	}{
		{"a stranger with a token", map[string]string{"/token": "abcdef.0123456789abcdef\n"}, token, []string{token}, told},
		{"a stranger with nothing", nil, token, nil, nil},
		{"a token that is not known", map[string]string{"/token": "abcdef.0123456789abcdef"}, "", []string{token}, nil},
		{"a node", map[string]string{"/kubeconfig": kubeconfig, "/known": known}, node, []string{node}, mixed},
		{"a node that is not known any more", map[string]string{"/kubeconfig": kubeconfig, "/known": known, "/token": "abcdef.0123456789abcdef"}, token, []string{node, token}, mixed},
		{"a node of a cluster that says nothing", map[string]string{"/kubeconfig": kubeconfig, "/known": known}, "", []string{node}, was},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := memory.New()
			for p, text := range tc.files {
				h.Put(p, text, 0o600)
			}
			asked, may = nil, map[string]bool{tc.may: true}
			q := &component.SettingsQuestion{Server: s.URL, CA: string(ca), Kubeconfig: "/kubeconfig", TokenFile: "/token", Known: "/known"}
			f, err := Refer(t.Context(), h, component.References{Settings: q}, component.Facts{}, unobserved)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, f.Cluster); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.asked, asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSettingsNeedACA: no token goes to a server that nobody knows.
func TestSettingsNeedACA(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	defer s.Close()
	q := &component.SettingsQuestion{Server: s.URL, CAFile: "/gone", Token: "abcdef.0123456789abcdef"}
	if f, err := Refer(t.Context(), memory.New(), component.References{Settings: q}, component.Facts{}, unobserved); err != nil || f.Cluster != nil {
		t.Errorf("%+v, %v", f.Cluster, err)
	}
}
