package apiserver

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKubeletSettings: what kubeadm's ConfigMap says goes before the Service, what a
// caller may not read is not told, and a server that fails is an error.
func TestKubeletSettings(t *testing.T) {
	const (
		configMap = "/api/v1/namespaces/kube-system/configmaps/kubelet-config"
		service   = "/api/v1/namespaces/kube-system/services/kube-dns"
		whole     = `{"kind":"ConfigMap","apiVersion":"v1","data":{"kubelet":"kind: KubeletConfiguration\nclusterDNS: [10.96.0.10, fd00::a]\nclusterDomain: k8s.example\ncgroupDriver: cgroupfs\n"}}`
		noDNS     = `{"kind":"ConfigMap","apiVersion":"v1","data":{"kubelet":"clusterDomain: k8s.example"}}`
		dns       = `{"kind":"Service","apiVersion":"v1","spec":{"clusterIP":"10.0.0.10","clusterIPs":["10.0.0.10","None"]}}`
		forbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
		absent    = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
	)
	for name, tc := range map[string]struct {
		code    map[string]int
		answers map[string]string
		want    KubeletSettings
		fails   bool
	}{
		"the ConfigMap": {map[string]int{configMap: 200}, map[string]string{configMap: whole},
			KubeletSettings{DNS: []string{"10.96.0.10", "fd00::a"}, Domain: "k8s.example", CgroupDriver: "cgroupfs"}, false},
		"the Service": {map[string]int{configMap: 404, service: 200}, map[string]string{configMap: absent, service: dns},
			KubeletSettings{DNS: []string{"10.0.0.10"}}, false},
		"both": {map[string]int{configMap: 200, service: 200}, map[string]string{configMap: noDNS, service: dns},
			KubeletSettings{DNS: []string{"10.0.0.10"}, Domain: "k8s.example"}, false},
		"a stranger":       {map[string]int{configMap: 403, service: 403}, map[string]string{configMap: forbidden, service: forbidden}, KubeletSettings{}, false},
		"a broken server":  {map[string]int{configMap: 500}, nil, KubeletSettings{}, true},
		"a broken Service": {map[string]int{configMap: 404, service: 500}, map[string]string{configMap: absent}, KubeletSettings{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, ca := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tc.code[r.URL.Path] == 0 {
					t.Errorf("asked for %s", r.URL.Path)
				}
				answer(w, tc.code[r.URL.Path], tc.answers[r.URL.Path])
			}))
			c, err := NewClient(Access{Server: s.URL, CA: []byte(ca)})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			got, err := c.KubeletSettings(t.Context())
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.fails {
				t.Errorf("%s, %v", diff, err)
			}
		})
	}
}

// TestParseKubeletSettings: what no kubelet would take is not told.
func TestParseKubeletSettings(t *testing.T) {
	for text, want := range map[string]KubeletSettings{
		"": {},
		`{"clusterDNS":["10.0.0.1"],"cgroupDriver":"systemd"}`:                  {DNS: []string{"10.0.0.1"}, CgroupDriver: "systemd"},
		"clusterDNS: [none, fe80::1%eth0]\nclusterDomain: a b\ncgroupDriver: x": {},
		"clusterDNS: 7": {},
		"- a":           {},
	} {
		if diff := cmp.Diff(want, ParseKubeletSettings([]byte(text))); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func FuzzParseKubeletSettings(f *testing.F) {
	f.Add([]byte("clusterDNS: [10.96.0.10]\nclusterDomain: cluster.local\ncgroupDriver: systemd\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := ParseKubeletSettings(text)
		if len(addresses(s.DNS)) != len(s.DNS) {
			t.Errorf("%q are no addresses", s.DNS)
		}
	})
}
