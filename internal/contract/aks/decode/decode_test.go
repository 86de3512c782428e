package decode

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTolerated(t *testing.T) {
	tests := map[string]struct {
		path  []string
		value any
		want  []string
	}{
		"unknown field":              {[]string{"cluster_config", "zone_count"}, 3, []string{"UnknownField cluster_config.zone_count: unknown field, ignored"}},
		"unknown object":             {[]string{"new_part", "a"}, []any{1, "x"}, []string{"UnknownField new_part: unknown field, ignored"}},
		"reserved field":             {[]string{"teleport_config"}, "x", []string{"UnknownField teleport_config: unknown field, ignored"}},
		"case":                       {[]string{"VmSize"}, "x", []string{"UnknownField VmSize: unknown field, ignored; did you mean vm_size?"}},
		"enum name":                  {[]string{"cluster_config", "vm_type"}, "VM_TYPE_FLEX", []string{`UnknownValue cluster_config.vm_type: unknown value "VM_TYPE_FLEX" of VmType, counts as not set`}},
		"registry suffix":            {[]string{"custom_cloud_config", "container_registry_dns_suffix"}, ".azurecr.example.", nil},
		"mirror":                     {[]string{"bootstrap_profile_container_registry_server"}, "Acr.example:5000/mirror/a_b", nil},
		"mirror by address":          {[]string{"bootstrap_profile_container_registry_server"}, "[fd00::1]:5000", nil},
		"pinned image":               {[]string{"kube_binary_config", "pod_infra_container_image_url"}, "mcr.example:443/oss/pause:3.10@sha256:" + digits, nil},
		"short image":                {[]string{"kube_binary_config", "pod_infra_container_image_url"}, "pause:3.10", nil},
		"version of a package":       {[]string{"containerd_config", "containerd_version"}, "v1.7.29-ubuntu22.04u1", nil},
		"ports with a tab":           {[]string{"custom_linux_os_config", "sysctl_config", "net_ipv4_ip_local_port_range"}, "32768\t60999", nil},
		"unknown enum number":        {[]string{"workload_runtime"}, 9, []string{`UnknownValue workload_runtime: unknown value "9" of WorkloadRuntime, counts as not set`}},
		"old version":                {[]string{"version"}, "v0", []string{"Deprecated version: version v0 is deprecated, write v1"}},
		"quoted number":              {[]string{"cse_timeout"}, "600", nil},
		"number with exponent":       {[]string{"cse_timeout"}, 6e2, nil},
		"known enum number":          {[]string{"network_config", "network_plugin"}, 3, nil},
		"base64 with newlines":       {[]string{"message_of_the_day"}, "aGVs\nbG8=\n", nil},
		"proxy without scheme":       {[]string{"http_proxy_config", "http_proxy"}, "proxy:3128", nil},
		"proxy that resolves names":  {[]string{"http_proxy_config", "https_proxy"}, "socks5h://proxy.example:1080", nil},
		"kubelet's own label":        {[]string{"kubelet_config", "kubelet_node_labels", "node.kubernetes.io/x"}, "y", nil},
		"foreign label":              {[]string{"kubelet_config", "kubelet_node_labels", "kubernetes.azure.com/mode"}, "user", nil},
		"taints":                     {[]string{"kubelet_config", "kubelet_flags", "--register-with-taints"}, "a=b:NoSchedule,a:NoExecute", nil},
		"IPv6 API server":            {[]string{"api_server_config", "api_server_name"}, "fd00::1", nil},
		"labels as kubelet reads":    {[]string{"kubelet_config", "kubelet_flags", "--node-labels"}, " a = b ,,foo", nil},
		"gates as kubelet reads":     {[]string{"kubelet_config", "kubelet_flags", "--feature-gates"}, "A=True, B = f,", nil},
		"two node addresses":         {[]string{"kubelet_config", "kubelet_flags", "--node-ip"}, "10.0.0.1, fd00::1", nil},
		"no credential provider":     {[]string{"kubelet_config", "kubelet_flags"}, map[string]any{"--image-credential-provider-config": "", "--image-credential-provider-bin-dir": ""}, nil},
		"certificate of the cluster": {[]string{"kubelet_config", "kubelet_flags"}, map[string]any{"--rotate-server-certificates": "1", "--tls-cert-file": "/x"}, nil},
		"soft and hard limit":        {[]string{"custom_linux_os_config", "ulimit_config", "max_locked_memory"}, "64M:infinity", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			doc, err := Decode(edited(t, test.path, test.value))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range doc.Notes {
				got = append(got, fmt.Sprintf("%s %s: %s", n.Kind, n.Path, n.Detail))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	os, kf := "custom_linux_os_config", "kubelet_config.kubelet_config_file_config"
	tests := []struct {
		path  string // keys, split at dots; a key with dots stands after the last /
		value any
		want  string // path: start of the message
	}{
		{"version", "v2", `version: Unsupported value: "v2": supported values: "v1", "v0"`},
		{"version", nil, "version: Required value"},
		{"kubernetes_ca_cert", nil, "kubernetes_ca_cert: Required value"},
		{"kubernetes_version", "v1.36", `kubernetes_version: Invalid value: "v1.36": expected a version`},
		{"api_server_config.api_server_public_key", privateKeyPEM(t), "api_server_config.api_server_public_key: Invalid value"},
		{"kubernetes_ca_cert", "%%", `kubernetes_ca_cert: Invalid value: "%%": expected base64 of PEM: the base64 is damaged`},
		{"kubernetes_ca_cert", "aGVsbG8=", `kubernetes_ca_cert: Invalid value: "aGVsbG8=": expected base64 of PEM: there is no PEM block in it`},
		{"cluster_config", "x", `cluster_config: Invalid value: expected an object, got a string`},
		{"api_server_config.api_server_name", "https://x:443", "api_server_config.api_server_name: Invalid value"},
		{"api_server_config.api_server_name", "x:443", "api_server_config.api_server_name: Invalid value"},
		{"bootstrapping_config.tls_bootstrapping_token", "ABCDEF.0123456789abcdef", "bootstrapping_config.tls_bootstrapping_token: Invalid value: \"REDACTED#"},
		{"bootstrapping_config.tls_bootstrapping_token", nil, "bootstrapping_config.tls_bootstrapping_token: Required value: kubelet needs a first credential"},
		{"bootstrapping_config.tls_bootstrapping_token", 7, "bootstrapping_config.tls_bootstrapping_token: Invalid value: \"REDACTED#"},
		{"network_config.network_plugin", "NETWORK_PLUGIN_CILIUM", `network_config.network_plugin: Unsupported value: "NETWORK_PLUGIN_CILIUM"`},
		{"network_config.network_plugin", 9, `network_config.network_plugin: Unsupported value: "9"`},
		{"network_config.network_plugin", true, `network_config.network_plugin: Invalid value: true: expected a name of NetworkPlugin, got a boolean`},
		{"cse_timeout", "abc", `cse_timeout: Invalid value: "abc": expected an integer, got a string`},
		{"cse_timeout", 1.5, `cse_timeout: Invalid value: "1.5": expected an integer of 32 bits`},
		{"cse_timeout", 1e12, `cse_timeout: Invalid value: "1000000000000": expected an integer of 32 bits`},
		{"is_kata", "true", `is_kata: Invalid value: "true": expected true or false, got a string`},
		{"custom_ca_certs", "x", `custom_ca_certs: Invalid value: "x": expected an array, got a string`},
		{"custom_ca_certs", []any{nil}, `custom_ca_certs[0]: Invalid value: expected a string, got null`},
		{"enabled_features", []any{}, "enabled_features: Invalid value: expected an object, got an array"},
		{"http_proxy_config.http_proxy", "ftp://u:p@x", "http_proxy_config.http_proxy: Invalid value: \"REDACTED#"},
		{"cluster_config.cloud_provider_config.backoff_exponent", "Infinity", "cluster_config.cloud_provider_config.backoff_exponent: Invalid value"},
		{"cluster_config.cloud_provider_config.rate_limit_qps", "x", "cluster_config.cloud_provider_config.rate_limit_qps: Invalid value: \"x\": expected a number, got a string"},
		{os + ".ulimit_config.no_file", "10:\n5", os + ".ulimit_config.no_file: Invalid value"},
		{os + ".ulimit_config.max_locked_memory", "64MiB", os + ".ulimit_config.max_locked_memory: Invalid value"},
		{os + ".ulimit_config.no_file", "1M", os + ".ulimit_config.no_file: Invalid value"},
		{os + ".ulimit_config.no_file", "10:5", os + ".ulimit_config.no_file: Invalid value: \"10:5\": the soft limit is above the hard one"},
		{os + ".sysctl_config.net_core_somaxconn", -5, os + ".sysctl_config.net_core_somaxconn: Invalid value: -5: expected 0 or more"},
		{os + ".sysctl_config.net_netfilter_nf_conntrack_buckets", 0, os + ".sysctl_config.net_netfilter_nf_conntrack_buckets: Invalid value: 0: expected 1 to 536870400"},
		{os + ".sysctl_config.net_netfilter_nf_conntrack_buckets", 1<<31 - 1, os + ".sysctl_config.net_netfilter_nf_conntrack_buckets: Invalid value: 2147483647: expected 1 to 536870400"},
		{os + ".sysctl_config.net_ipv4_ip_local_port_range", "2000 1000", os + ".sysctl_config.net_ipv4_ip_local_port_range: Invalid value"},
		{os + ".sysctl_config.net_ipv4_ip_local_port_range", "1023 65000", os + ".sysctl_config.net_ipv4_ip_local_port_range: Invalid value: \"1023 65000\": expected 1024 or more as the first port: the kernel"},
		{os + ".sysctl_config.net_ipv4_ip_local_port_range", "1000 70000", os + ".sysctl_config.net_ipv4_ip_local_port_range: Invalid value"},
		{"api_server_config.api_server_name", "fe80::1%a\nb", "api_server_config.api_server_name: Invalid value"},
		{"api_server_config.api_server_name", "fe80::1%eth0", "api_server_config.api_server_name: Invalid value"},
		{"runc_config.runc_package_url", "not a url\n\u0001", "runc_config.runc_package_url: Invalid value"},
		{"kube_binary_config.pod_infra_container_image_url", "a//b:::@", "kube_binary_config.pod_infra_container_image_url: Invalid value"},
		{"bootstrap_profile_container_registry_server", "acr/p q#frag", "bootstrap_profile_container_registry_server: Invalid value"},
		{"bootstrap_profile_container_registry_server", "acr/../../x", "bootstrap_profile_container_registry_server: Invalid value"},
		{"bootstrap_profile_container_registry_server", "acr:0/x", "bootstrap_profile_container_registry_server: Invalid value"},
		{"custom_cloud_config.container_registry_dns_suffix", "azurecr.example\nx", "custom_cloud_config.container_registry_dns_suffix: Invalid value"},
		{"kubelet_config.kubelet_node_labels/kubernetes.io/role", "agent", "kubelet_config.kubelet_node_labels[kubernetes.io/role]: Invalid value: \"kubernetes.io/role\": kubelet does not start with it"},
		{"kubelet_config.kubelet_node_labels/a b", "x", "kubelet_config.kubelet_node_labels[a b]: Invalid value"},
		{"kubelet_config.kubelet_node_labels/a", "x y", "kubelet_config.kubelet_node_labels[a]: Invalid value: \"x y\""},
		{"kubelet_config.kubelet_node_labels/a", 1, "kubelet_config.kubelet_node_labels[a]: Invalid value: \"1\": expected a string, got a number"},
		{"kubelet_config.kubelet_flags/v", "2", "kubelet_config.kubelet_flags[v]: Invalid value"},
		{"kubelet_config.kubelet_flags/--node-labels", "a=b,k8s.io/x=y", "kubelet_config.kubelet_flags[--node-labels]: Invalid value: \"a=b,k8s.io/x=y\": k8s.io/x=y: kubelet"},
		{"kubelet_config.kubelet_flags/--register-with-taints", "a=b", "kubelet_config.kubelet_flags[--register-with-taints]: Invalid value"},
		{"kubelet_config.kubelet_flags/--register-with-taints", "a=b:NoSchedule,a=c:NoSchedule", "kubelet_config.kubelet_flags[--register-with-taints]: Invalid value: \"a=b:NoSchedule,a=c:NoSchedule\": a=c:NoSchedule: the taint is there twice"},
		{"kubelet_config.kubelet_flags/--register-with-taints", "a=b:NoSchedule, c=d:NoExecute", "kubelet_config.kubelet_flags[--register-with-taints]: Invalid value: \"a=b:NoSchedule, c=d:NoExecute\":  c=d:NoExecute: expected a name"},
		{"kubelet_config.kubelet_flags/--node-labels", "a b", "kubelet_config.kubelet_flags[--node-labels]: Invalid value"},
		{"kubelet_config.kubelet_flags/--feature-gates", "A=yes", "kubelet_config.kubelet_flags[--feature-gates]: Invalid value"},
		{"kubelet_config.kubelet_flags/--feature-gates", "A", "kubelet_config.kubelet_flags[--feature-gates]: Invalid value"},
		{"kubelet_config.kubelet_flags/--rotate-server-certificates", "yes", "kubelet_config.kubelet_flags[--rotate-server-certificates]: Invalid value: \"yes\": expected true or false"},
		{"kubelet_config.kubelet_flags/--protect-kernel-defaults", "", "kubelet_config.kubelet_flags[--protect-kernel-defaults]: Invalid value: \"\": expected true or false"},
		{"kubelet_config.kubelet_flags/--hostname-override", "a/b c", "kubelet_config.kubelet_flags[--hostname-override]: Invalid value"},
		{"kubelet_config.kubelet_flags/--hostname-override", " ", "kubelet_config.kubelet_flags[--hostname-override]: Invalid value"},
		{"kubelet_config.kubelet_flags/--hostname-override", strings.Repeat("e", 64), "kubelet_config.kubelet_flags[--hostname-override]: Invalid value"},
		{"kubelet_config.kubelet_flags/--kubeconfig", "", "kubelet_config.kubelet_flags[--kubeconfig]: Invalid value: \"\": expected a path"},
		{"kubelet_config.kubelet_flags/--node_ip", "10.0.0.1,10.0.0.2", "kubelet_config.kubelet_flags[--node_ip]: Invalid value: \"10.0.0.1,10.0.0.2\": expected one IP address, or"},
		{"kubelet_config.kubelet_flags/--node-ip", "0.0.0.0,fd00::1", "kubelet_config.kubelet_flags[--node-ip]: Invalid value"},
		{"kubelet_config.kubelet_flags/-node-ip", "10.0.0.1", "kubelet_config.kubelet_flags[-node-ip]: Invalid value"},
		{"kubelet_config.kubelet_flags/--tls-cipher-suites", "TLS_FOO", "kubelet_config.kubelet_flags[--tls-cipher-suites]: Invalid value: \"TLS_FOO\": TLS_FOO: expected the name of a TLS cipher suite"},
		{"kubelet_config.container_data_dir", "/run/containerd/", "kubelet_config.container_data_dir: Invalid value: \"/run/containerd/\": expected another directory"},
		{"kubelet_config.kubelet_flags/--cert-dir", "/", "kubelet_config.kubelet_flags[--cert-dir]: Invalid value"},
		{"kubelet_config.kubelet_flags/--image-credential-provider-config", "/p.yaml", "kubelet_config.kubelet_flags[--image-credential-provider-bin-dir]: Required value: kubelet does not start with --image-credential-provider-config alone"},
		{"kubelet_config.kubelet_flags/--tls-private-key-file", "/k", "kubelet_config.kubelet_flags[--tls-cert-file]: Required value: kubelet does not start with --tls-private-key-file alone"},
		{"kubelet_config", map[string]any{"enable_kubelet_config_file": true, "kubelet_config_file_config": map[string]any{"tls_cert_file": "/c"}}, "kubelet_config.kubelet_config_file_config.tls_private_key_file: Required value: kubelet does not start with tls_cert_file alone"},
		{"kubelet_config.kubelet_flags/--eviction-hard", "memory.free<1Gi", "kubelet_config.kubelet_flags[--eviction-hard]: Invalid value"},
		{"kubelet_config.kubelet_flags/--kube-reserved", "cpu", "kubelet_config.kubelet_flags[--kube-reserved]: Invalid value: \"cpu\": cpu: expected name=value"},
		{"kubelet_config.kubelet_client_key", "aGVsbG8=", "kubelet_config.kubelet_client_key: Invalid value: \"REDACTED#"},
		{kf + ".read_only_port", 65536, kf + ".read_only_port: Invalid value: 65536: expected 0 to 65535"},
		{kf + ".kube_reserved/memory", "-1Gi", kf + ".kube_reserved[memory]: Invalid value: \"-1Gi\": expected a quantity, not negative"},
		{kf + ".eviction_hard/memory.available", "0", kf + ".eviction_hard[memory.available]: Invalid value: \"0\": expected a quantity above 0"},
		{kf + ".eviction_soft_grace_period/memory.available", "-1s", kf + ".eviction_soft_grace_period[memory.available]: Invalid value"},
		{kf + ".image_gc_low_threshold_percent", 85, kf + ".image_gc_low_threshold_percent: Invalid value: 85: expected less than image_gc_high_threshold_percent, which is 85"},
		{kf + ".image_gc_high_threshold_percent", 80, kf + ".image_gc_high_threshold_percent: Invalid value: 80: expected more than image_gc_low"},
		{kf + ".enforce_node_allocatable", []any{"pods", "none"}, kf + ".enforce_node_allocatable: Invalid value: [\"pods\",\"none\"]: expected none alone"},
		{kf + ".enforce_node_allocatable", []any{"pods", "pods"}, kf + ".enforce_node_allocatable: Invalid value: [\"pods\",\"pods\"]: expected each one once"},
		{kf + ".enforce_node_allocatable", []any{"kube-reserved"}, kf + ".enforce_node_allocatable: Invalid value: [\"kube-reserved\"]: kubelet wants kube_reserved_cgroup"},
		{kf + ".cgroups_per_qos", false, kf + ".enforce_node_allocatable: Invalid value"},
		{kf + ".address", "banana", kf + ".address: Invalid value: \"banana\": expected an IP address"},
		{kf + ".node_status_update_frequency", "10", kf + ".node_status_update_frequency: Invalid value"},
		{kf + ".authorization.mode", "webhook", kf + ".authorization.mode: Invalid value"},
		{"kubelet_config.container_data_dir", "/a\u0000b", "kubelet_config.container_data_dir: Invalid value: \"/a\\x00b\": expected a path"},
		{kf + ".kube_reserved/gpu", "1", kf + ".kube_reserved[gpu]: Invalid value"},
		{kf + ".kube_reserved/memory", "1 Gi", kf + ".kube_reserved[memory]: Invalid value"},
		{kf + ".eviction_hard/memory.available", "110%", kf + ".eviction_hard[memory.available]: Invalid value"},
		{kf + ".eviction_soft/memory.available", "10%", kf + ".eviction_soft_grace_period[memory.available]: Required value"},
		{kf + ".tls_cipher_suites", []any{"TLS_FOO"}, kf + ".tls_cipher_suites[0]: Invalid value"},
		{kf + ".cpu_cfs_quota_period", "2s", kf + ".cpu_cfs_quota_period: Invalid value"},
		{kf + ".feature_gates/X", "true", kf + ".feature_gates[X]: Invalid value: \"true\": expected true or false, got a string"},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s=%.20v", test.path, test.value), func(t *testing.T) {
			e := edits{test.path: test.value}
			switch {
			case strings.HasPrefix(test.path, kf): // else nothing reads it
				e["kubelet_config.enable_kubelet_config_file"] = true
			case strings.HasPrefix(test.path, "kubelet_config.kubelet_client"):
				e["bootstrapping_config"] = map[string]any{"bootstrapping_auth_method": "BOOTSTRAPPING_AUTH_METHOD_AZURE_MSI"}
			}
			_, err := Decode(e.document(t))
			refused, ok := errors.AsType[*DocumentError](err)
			if !ok {
				t.Fatalf("accepted: %v", err)
			}
			if got := refused.List()[0].Error(); !strings.HasPrefix(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if refused.Code != 240 {
				t.Errorf("code %d", refused.Code)
			}
		})
	}
}

func TestSyntax(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"empty":        {"", "line 1, column 1: Invalid value: the document is empty"},
		"truncated":    {"{\n  \"version\": \"v1\",\n  \"cluster_config\": {", "line 3, column 22: Invalid value: the document ends after 42 bytes, in the middle of a value: it is truncated"},
		"in a string":  {`{"version": "v`, "line 1, column 15: Invalid value: the document ends after 14 bytes, in the middle of a value: it is truncated"},
		"comma":        {"{\n  \"version\": \"v1\",\n}", "line 3, column 1: Invalid value: not JSON: invalid character '}' looking for beginning of object key string"},
		"twice":        {"{} {}", "line 1, column 4: Invalid value: not JSON: invalid character '{' after top-level value"},
		"not UTF-8":    {"{\"ä\": \"\xff\"}", "line 1, column 8: Invalid value: the text is not UTF-8"},
		"surrogate":    {`{"version": "\ud800"}`, "line 1, column 13: Invalid value: half of a surrogate pair in a string"},
		"not a object": {`[1]`, "line 1, column 1: Invalid value: expected an object, got an array"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(test.text))
			refused, ok := errors.AsType[*DocumentError](err)
			if !ok {
				t.Fatalf("accepted: %v", err)
			}
			if got := refused.Errors[0].String(); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// All errors are in one answer, in the order of the document, spelled as the document spells.
func TestAllErrorsAtOnce(t *testing.T) {
	_, err := Decode([]byte(`{
  "version": "v1",
  "kubernetesVersion": "1.x",
  "kubernetesVersion": "1.36.3",
  "clusterConfig": {"resourceGroup": 7, "vmType": "VM_TYPE_VMSS"},
  "authConfig": {"subscription_id": "x", "servicePrincipalSecret": true},
  "kubeletConfig": {"enableKubeletConfigFile": true,
    "kubeletNodeLabels": {"a": "!", "b": "?"},
    "kubeletConfigFileConfig": {"clusterDNS": ["x"], "cpu_cfs_quota_period": "1h"}
  }
}`))
	want := `configuration refused, 10 errors:
  line 1, column 1: apiServerConfig.apiServerName: Required value: a node that joins a cluster needs it
  line 1, column 1: kubernetesCaCert: Required value: a node that joins a cluster needs it
  line 1, column 1: bootstrappingConfig.tlsBootstrappingToken: Required value: kubelet needs a first credential: this token, a client certificate with its key, or an identity method
  line 3, column 24: kubernetesVersion: Invalid value: "1.x": expected a version x.y.z, e.g. "1.34.2"
  line 4, column 3: kubernetesVersion: Duplicate value: the document sets it twice
  line 5, column 38: clusterConfig.resourceGroup: Invalid value: "7": expected a string, got a number
  line 6, column 68: authConfig.servicePrincipalSecret: Invalid value: true: expected a string, got a boolean
  line 8, column 27: kubeletConfig.kubeletNodeLabels[a]: Invalid value: "!": expected a label value: at most 63 of letters, digits, -, _ and ., a letter or digit first and last
  line 8, column 37: kubeletConfig.kubeletNodeLabels[b]: Invalid value: "?": expected a label value: at most 63 of letters, digits, -, _ and ., a letter or digit first and last
  line 9, column 78: kubeletConfig.kubeletConfigFileConfig.cpu_cfs_quota_period: Invalid value: "1h": expected a duration from 1ms to 1s`
	if err == nil {
		t.Fatal("accepted")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
}

// An image needs neither cluster nor credential.
func TestImageNeedsLittle(t *testing.T) {
	if _, err := Decode([]byte(`{"version":"v1","kubernetes_version":"1.36.3","pre_provision_only":true}`)); err != nil {
		t.Error(err)
	}
}

func TestPathsAreRespelled(t *testing.T) {
	doc, err := Read([]byte(`{"localDnsProfile": {"vnetDnsOverrides": {"a.b": {"serve_stale": "Verify"}}}, "kubelet_config": {"kubeletFlags": {"--a.b": ""}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for canonical, want := range map[string]string{
		"local_dns_profile.vnet_dns_overrides[a.b].serve_stale": "localDnsProfile.vnetDnsOverrides[a.b].serve_stale",
		"kubelet_config.kubelet_flags[--a.b]":                   "kubelet_config.kubeletFlags[--a.b]",
		"custom_ca_certs[0]":                                    "customCaCerts[0]", // as most of the document
	} {
		if got := doc.Path(canonical); got != want {
			t.Errorf("%s: %s", canonical, got)
		}
	}
}
