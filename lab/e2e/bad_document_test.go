package e2e

import (
	"bytes"
	"testing"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
)

// badDocuments are refused before anything is touched.
func badDocuments(t *testing.T, m *badMachine) {
	good := m.document(t)
	m.each(t, []badCase{
		{name: "truncated", config: truncated(good), code: 240, says: []string{"line 4, column "}, hint: "Correct"},
		{name: "no JSON", config: []byte("hello\n"), code: 240, says: []string{"line 1, column 1"}},
		{name: "empty", config: []byte{}, code: 240},
		{name: "version", config: replaced(t, good, `"version": "v1"`, `"version": "v9"`), code: 240,
			field: "version", says: []string{`"v9"`, `"v1"`}, hint: "Correct"},
		{name: "no CA", code: 240, field: "kubernetes_ca_cert", says: []string{"Required"},
			config: m.document(t, func(c *aksnodeconfigv1.Configuration) { c.KubernetesCaCert = "" })},
		{name: "CA is no base64", code: 240, field: "kubernetes_ca_cert", says: []string{"base64 is damaged"},
			config: m.document(t, func(c *aksnodeconfigv1.Configuration) { c.KubernetesCaCert = "%%" + c.KubernetesCaCert })},
		{name: "CA is no PEM", code: 240, field: "kubernetes_ca_cert", says: []string{"no PEM block"},
			config: m.document(t, func(c *aksnodeconfigv1.Configuration) { c.KubernetesCaCert = "aGVsbG8=" })},
		{name: "CNI", code: 240, field: "network_config.network_plugin", says: []string{"NETWORK_PLUGIN_CILIUM", "KUBENET"},
			config: replaced(t, good, "NETWORK_PLUGIN_KUBENET", "NETWORK_PLUGIN_CILIUM")},
		{name: "label", code: 240, field: "kubelet_config.kubelet_node_labels[kubernetes.io/role]", says: []string{"kubelet does not start with it"},
			config: m.document(t, func(c *aksnodeconfigv1.Configuration) {
				c.KubeletConfig.KubeletNodeLabels["kubernetes.io/role"] = "agent"
			})},
		{name: "many errors", code: 240, field: "kubernetes_ca_cert, api_server_config.api_server_name, kubelet_config.kubelet_node_labels[kubernetes.io/role]",
			config: m.document(t, manyErrors)},
		{name: "camel case", code: 240, field: "kubernetesCaCert, apiServerConfig.apiServerName", says: []string{"expected a DNS name"},
			config: []byte(`{"version": "v1", "kubernetesVersion": "1.36.0", "authConfig": {"subscriptionId": "s"}, "apiServerConfig": {"apiServerName": "a b"},
"clusterConfig": {"resourceGroup": "g", "location": "l", "clusterNetworkConfig": {"vnetName": "v", "routeTable": "r"}},
"bootstrappingConfig": {"tlsBootstrappingToken": "` + lab.Token + `"}}`)},
	})
}

func manyErrors(c *aksnodeconfigv1.Configuration) {
	c.KubernetesCaCert = ""
	c.ApiServerConfig.ApiServerName = "https://api"
	c.KubeletConfig.KubeletNodeLabels["kubernetes.io/role"] = "agent"
}

// truncated is a document that ends in its fourth line.
func truncated(doc []byte) []byte {
	lines := bytes.SplitAfter(doc, []byte("\n"))
	lines[3] = lines[3][:len(lines[3])/2]
	return bytes.Join(lines[:4], nil)
}

func replaced(t *testing.T, doc []byte, old, by string) []byte {
	t.Helper()
	if bytes.Count(doc, []byte(old)) != 1 {
		t.Fatalf("%q stands %d times in\n%s", old, bytes.Count(doc, []byte(old)), doc)
	}
	return bytes.Replace(doc, []byte(old), []byte(by), 1)
}
