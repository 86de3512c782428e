package decode

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

// habit is what clients send, with what becomes of it: the notes, and the value that counts.
type habit struct {
	edits edits
	notes []string
	reads func(*aksnodeconfigv1.Configuration) any
	want  any
}

const (
	flagsAt      = "kubelet_config.kubelet_flags"
	inConfigFile = "kubelet_config.kubelet_config_file_config"
	switchedOn   = "kubelet_config.enable_kubelet_config_file"
)

func flagsOf(c *aksnodeconfigv1.Configuration) any { return c.GetKubeletConfig().GetKubeletFlags() }

// TestClientHabits: what working clients send is accepted, and what counts in another form is noted.
func TestClientHabits(t *testing.T) {
	for name, h := range habits(t) {
		t.Run(name, func(t *testing.T) {
			doc, err := Decode(h.edits.document(t))
			if err != nil {
				t.Fatal(err)
			}
			var notes []string
			for _, n := range doc.Notes {
				notes = append(notes, n.Path+": "+n.Detail)
				if n.Kind != Normalized || n.Line < 2 {
					t.Errorf("note %+v", n)
				}
			}
			if diff := cmp.Diff(h.notes, notes); diff != "" {
				t.Errorf("notes: %s", diff)
			}
			if h.reads != nil {
				if diff := cmp.Diff(h.want, h.reads(doc.Config)); diff != "" {
					t.Errorf("reads as: %s", diff)
				}
			}
			if list := Validate(doc.Config); len(list) > 0 {
				t.Errorf("refused in the form that counts: %v", list)
			}
		})
	}
}

func habits(t *testing.T) map[string]habit {
	out := map[string]habit{}
	for _, part := range []map[string]habit{kubeletHabits(), flagHabits(), nameHabits(), offHabits(), certificateHabits(t), localDNSHabits()} {
		for name, h := range part {
			out[name] = h
		}
	}
	return out
}

func kubeletHabits() map[string]habit {
	file := func(field string, value any) edits { return edits{switchedOn: true, inConfigFile + "." + field: value} }
	read := func(get func(*aksnodeconfigv1.KubeletConfigFileConfig) any) func(*aksnodeconfigv1.Configuration) any {
		return func(c *aksnodeconfigv1.Configuration) any {
			return get(c.GetKubeletConfig().GetKubeletConfigFileConfig())
		}
	}
	return map[string]habit{
		"old names of ciphers": {edits: file("tls_cipher_suites", []any{"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
			"TLS_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"})},
		"empty items": {edits: file("cluster_dns", []any{"10.0.0.10", "", " "}),
			notes: []string{inConfigFile + ".cluster_dns[1]: it is empty and left out", inConfigFile + ".cluster_dns[2]: it is empty and left out"},
			reads: read(func(f *aksnodeconfigv1.KubeletConfigFileConfig) any { return f.GetClusterDns() }), want: []string{"10.0.0.10"}},
		"an empty cipher": {edits: file("tls_cipher_suites", []any{""}), notes: []string{inConfigFile + ".tls_cipher_suites[0]: it is empty and left out"}},
		"cluster DNS by name, over which kubelet passes": {edits: file("cluster_dns", []any{"dns", "10.0.0.10/16"})},
		"a domain of kubelet's own taste":                {edits: file("cluster_domain", "a b")},
		"negative durations":                             {edits: file("node_status_update_frequency", "-10s")},
		"durations with fractions":                       {edits: file("streaming_connection_idle_timeout", "1.5h")},
		"a relative path of static pods":                 {edits: file("static_pod_path", "manifests")},
		"no limit of processes":                          {edits: file("pod_pids_limit", -1)},
		"any limit of grace":                             {edits: file("eviction_max_pod_grace_period", -1)},
		"quantities with a sign and an exponent":         {edits: file("system_reserved", map[string]any{"cpu": "+1e2", "memory": "0", "ephemeral-storage": "1.5Gi"})},
		"a negative size of logs, which is no limit":     {edits: file("container_log_max_size", "-1")},
		"percentages with a fraction":                    {edits: file("eviction_hard", map[string]any{"nodefs.available": "12.5%", "imagefs.available": "0%"})},
		"a soft threshold that is off needs no grace":    {edits: file("eviction_soft", map[string]any{"memory.available": "0%"})},
		"an address with zeros":                          {edits: file("address", "010.000.000.001")},
		"cgroup names without a slash":                   {edits: edits{switchedOn: true, inConfigFile + ".kube_reserved_cgroup": "kubereserved.slice", inConfigFile + ".system_reserved_cgroup": "system.slice"}},
		"cgroups of other names":                         {edits: file("kube_reserved_cgroup", "/kubelet.slice")},
		"a certificate beside the configuration file": {edits: edits{switchedOn: true, inConfigFile + ".tls_cert_file": "tls/a.crt", inConfigFile + ".tls_private_key_file": "/etc/k//a.key"},
			notes: []string{inConfigFile + ".tls_cert_file: a relative path begins at /etc/default", inConfigFile + ".tls_private_key_file: the path is /etc/k/a.key"},
			reads: read(func(f *aksnodeconfigv1.KubeletConfigFileConfig) any { return f.GetTlsCertFile() }), want: "/etc/default/tls/a.crt"},
		"a path of containers with a slash at its end": {edits: edits{"kubelet_config.container_data_dir": "/mnt/containers/"},
			notes: []string{"kubelet_config.container_data_dir: a slash at its end does not count"},
			reads: func(c *aksnodeconfigv1.Configuration) any { return c.GetKubeletConfig().GetContainerDataDir() }, want: "/mnt/containers"},
		"labels with blanks": {edits: edits{"kubelet_config.kubelet_node_labels": map[string]any{" a ": "b ", "c": ""}},
			notes: []string{"kubelet_config.kubelet_node_labels[ a ]: blanks around it do not count", "kubelet_config.kubelet_node_labels[ a ]: blanks around it do not count"},
			reads: func(c *aksnodeconfigv1.Configuration) any { return c.GetKubeletConfig().GetKubeletNodeLabels() }, want: map[string]string{"a": "b", "c": ""}},
	}
}

func flagHabits() map[string]habit {
	flag := func(name, value string) edits { return edits{flagsAt + "/" + name: value} }
	return map[string]habit{
		"underscores": {edits: flag("--node_labels", "a=b"), notes: []string{flagsAt + "[--node_labels]: kubelet reads it as --node-labels"},
			reads: flagsOf, want: map[string]string{"--node-labels": "a=b"}},
		"one dash": {edits: flag("-v", "4"), notes: []string{flagsAt + "[-v]: kubelet reads it as --v"},
			reads: flagsOf, want: map[string]string{"--v": "4"}},
		"two spellings": {edits: edits{flagsAt: map[string]any{"--max-pods": "1", "--max_pods": "2"}},
			notes: []string{flagsAt + "[--max-pods]: it is there twice, and " + flagsAt + "[--max_pods] counts", flagsAt + "[--max_pods]: kubelet reads it as --max-pods"},
			reads: flagsOf, want: map[string]string{"--max-pods": "2"}},
		"a directory with a slash at its end": {
			edits: edits{flagsAt: map[string]any{"--image-credential-provider-config": "/var/lib/kubelet/p.yaml", "--image-credential-provider-bin-dir": "/var/lib/kubelet/p/"}},
			notes: []string{flagsAt + "[--image-credential-provider-bin-dir]: a slash at its end does not count"},
			reads: flagsOf, want: map[string]string{"--image-credential-provider-config": "/var/lib/kubelet/p.yaml", "--image-credential-provider-bin-dir": "/var/lib/kubelet/p"}},
		"a relative path": {edits: flag("--kubeconfig", "var/k"), notes: []string{flagsAt + "[--kubeconfig]: a relative path begins at /"},
			reads: flagsOf, want: map[string]string{"--kubeconfig": "/var/k"}},
		"an underscored path": {edits: flag("--cert_dir", "/a/"),
			notes: []string{flagsAt + "[--cert_dir]: kubelet reads it as --cert-dir", flagsAt + "[--cert_dir]: a slash at its end does not count"},
			reads: flagsOf, want: map[string]string{"--cert-dir": "/a"}},
		"an address that is none": {edits: flag("--node-ip", "none, 10.0.0.4"), notes: []string{flagsAt + "[--node-ip]: kubelet passes over what is no IP address"},
			reads: flagsOf, want: map[string]string{"--node-ip": "10.0.0.4"}},
		"old names of ciphers in a flag": {edits: flag("--tls-cipher-suites", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305,TLS_RSA_WITH_AES_256_GCM_SHA384")},
		"the cluster's DNS":              {edits: flag("--cluster-dns", "dns, 10.0.0.10")},
		"a driver that kubelet takes for cgroupfs": {edits: flag("--cgroup-driver", " systemd"),
			notes: []string{flagsAt + "[--cgroup-driver]: it is not exactly one of cgroupfs, systemd: it counts as cgroupfs"},
			reads: flagsOf, want: map[string]string{"--cgroup-driver": "cgroupfs"}},
		"flags that kubelet dropped": {edits: flag("--pod-infra-container-image", "mcr.microsoft.com/oss/v2/kubernetes/pause:3.6")},
		"quantities in flags":        {edits: edits{flagsAt: map[string]any{"--kube-reserved": "cpu=100m, memory=+1Gi,,pid=0", "--eviction-hard": "memory.available<750Mi , nodefs.available<10%,"}}},
	}
}

func nameHabits() map[string]habit {
	return map[string]habit{
		"no names of the network": {edits: edits{"cluster_config": nil, "auth_config": nil}},
		"a virtual network without a name and routes": {edits: edits{"cluster_config.cluster_network_config.vnet_name": "", "cluster_config.cluster_network_config.route_table": "",
			"auth_config.subscription_id": "", "cluster_config.resource_group": "", "cluster_config.location": ""}},
		"a location in words": {edits: edits{"cluster_config.location": "West Europe"}},
		"a timeout that is too long": {edits: edits{"cse_timeout": 21601}, notes: []string{"cse_timeout: it is not within 1 to 21600: it counts as the default, 900"},
			reads: func(c *aksnodeconfigv1.Configuration) any { return c.GetCseTimeout() }, want: int32(900)},
		"a negative timeout":           {edits: edits{"cse_timeout": -1}, notes: []string{"cse_timeout: it is not within 1 to 21600: it counts as the default, 900"}},
		"a timeout of nothing":         {edits: edits{"cse_timeout": 0}, notes: []string{"cse_timeout: it is not within 1 to 21600: it counts as the default, 900"}},
		"a login name with a dot":      {edits: edits{"linux_admin_username": "first.last"}},
		"a login name of 40":           {edits: edits{"linux_admin_username": strings.Repeat("a", 40)}},
		"features that nobody knows":   {edits: edits{"enabled_features": map[string]any{"1A": "x", "a-b": "", "ENABLE_X": "true\n"}}},
		"a secret that is no base64":   {edits: edits{"auth_config.service_principal_secret": "msi"}, notes: []string{"auth_config.service_principal_secret: no base64: it is taken as it is"}, reads: func(c *aksnodeconfigv1.Configuration) any { return c.GetAuthConfig().GetServicePrincipalSecret() }, want: "bXNp"},
		"a version with a v":           {edits: edits{"kubernetes_version": " v1.34.2"}, notes: []string{"kubernetes_version: blanks around it do not count; the v before it does not count"}, reads: func(c *aksnodeconfigv1.Configuration) any { return c.GetKubernetesVersion() }, want: "1.34.2"},
		"a token with a line break":    {edits: edits{"bootstrapping_config.tls_bootstrapping_token": "abcdef.0123456789abcdef\n"}, notes: []string{"bootstrapping_config.tls_bootstrapping_token: blanks around it do not count"}},
		"an API server in brackets":    {edits: edits{"api_server_config.api_server_name": "[fd00::1]"}, notes: []string{"api_server_config.api_server_name: the brackets are added where they are needed"}, reads: func(c *aksnodeconfigv1.Configuration) any { return c.GetApiServerConfig().GetApiServerName() }, want: "fd00::1"},
		"an API server's name":         {edits: edits{"api_server_config.api_server_name": "My_cluster-dns-1234.hcp.westeurope.azmk8s.io."}},
		"an endpoint without a scheme": {edits: edits{"custom_cloud_config.custom_cloud_env_name": "AksCustom", "custom_cloud_config.repo_depot_endpoint": "repodepot.azure.example/ubuntu"}},
		"a mirror with a scheme": {edits: edits{"bootstrap_profile_container_registry_server": "https://acr.example/aks/"},
			notes: []string{"bootstrap_profile_container_registry_server: it is reached by https anyway; a slash at its end does not count"},
			reads: func(c *aksnodeconfigv1.Configuration) any { return c.GetBootstrapProfileContainerRegistryServer() }, want: "acr.example/aks"},
		"empty optional settings":               {edits: edits{"bootstrapping_config.secure_tls_bootstrapping_aad_resource": "", "bootstrapping_config.secure_tls_bootstrapping_custom_client_download_url": ""}},
		"timeouts of a client that is not used": {edits: edits{"bootstrapping_config.secure_tls_bootstrapping_get_nonce_timeout": "5"}},
		"proxies that are none":                 {edits: edits{"http_proxy_config.no_proxy_entries": []any{"localhost", "", `"quoted"`}}},
		"a proxy with exceptions":               {edits: edits{"http_proxy_config": map[string]any{"https_proxy": " http://proxy:3128", "no_proxy_entries": []any{"localhost", ""}}}, notes: []string{"http_proxy_config.https_proxy: blanks around it do not count", "http_proxy_config.no_proxy_entries[1]: it is empty and left out"}},
		"a message that is no base64":           {edits: edits{"message_of_the_day": "hello"}},
		"kernel values below zero":              {edits: edits{"custom_linux_os_config.sysctl_config.net_ipv4_tcp_max_tw_buckets": -1}},
		"ports with a line break":               {edits: edits{"custom_linux_os_config.sysctl_config.net_ipv4_ip_local_port_range": " 1024\n65000 "}},
		"slots of half a page": {edits: edits{"custom_linux_os_config.sysctl_config.net_netfilter_nf_conntrack_buckets": 65537},
			notes: []string{"custom_linux_os_config.sysctl_config.net_netfilter_nf_conntrack_buckets: the kernel rounds it up to whole pages: it counts as " + strconv.Itoa(65536+os.Getpagesize()/8)},
			reads: func(c *aksnodeconfigv1.Configuration) any {
				return c.GetCustomLinuxOsConfig().GetSysctlConfig().GetNetNetfilterNfConntrackBuckets()
			}, want: int32(65536 + os.Getpagesize()/8)},
		"limits as systemd reads": {edits: edits{"custom_linux_os_config.ulimit_config.no_file": "1024:0x100000 ", "custom_linux_os_config.ulimit_config.max_locked_memory": "1G 500M"},
			notes: []string{"custom_linux_os_config.ulimit_config.no_file: blanks around it do not count"}},
		"huge pages as the kernel does not know": {edits: edits{"custom_linux_os_config.transparent_hugepage_support": "defer"}},
		"a version of containerd in two parts": {edits: edits{"containerd_config.containerd_version": "1.7", "containerd_config.containerd_package_url": "https://x.example/c.tar.gz"},
			notes: []string{"containerd_config.containerd_version: no version x.y.z: any will do"},
			reads: func(c *aksnodeconfigv1.Configuration) any { return c.GetContainerdConfig().GetContainerdVersion() }, want: ""},
	}
}

// offHabits: nothing reads these values, so whatever they are is right.
func offHabits() map[string]habit {
	nonsense := map[string]any{"max_pods": -1, "tls_cipher_suites": []any{"x", ""}, "address": "x", "kind": "y", "eviction_hard": map[string]any{"x": "y"}, "node_status_update_frequency": "often"}
	return map[string]habit{
		"a configuration file that is off":    {edits: edits{inConfigFile: nonsense}},
		"a configuration file of the image":   {edits: edits{switchedOn: true, inConfigFile: nonsense, flagsAt + "/--config": "/etc/kubelet.yaml"}},
		"a client certificate beside a token": {edits: edits{"kubelet_config.kubelet_client_key": "none", "kubelet_config.kubelet_client_cert_content": "none"}},
		"a cloud that is none":                {edits: edits{"custom_cloud_config": map[string]any{"custom_env_json_content": "{", "repo_depot_endpoint": "x y", "custom_cloud_env_name": "AzurePublicCloud"}}},
		"a DNS cache that is off":             {edits: edits{"local_dns_profile": map[string]any{"cpu_limit_in_milli_cores": 0, "critical_fqdns": []any{"x y"}, "vnet_dns_overrides": map[string]any{"x y": map[string]any{"protocol": "z", "max_concurrent": -1}}}}},
		"an archive that does not count":      {edits: edits{"kube_binary_config.custom_kube_binary_url": "https://x.example/k.tar.gz", "kube_binary_config.kube_binary_url": "ftp://x"}},
		"a provider that is not used":         {edits: edits{"kube_binary_config.linux_credential_provider_url": "ftp://x"}},
		"plug-ins of Azure":                   {edits: edits{"network_config.vnet_cni_plugins_url": "ftp://x"}},
		"GPUs":                                {edits: edits{"gpu_config": map[string]any{"gpu_instance_profile": "MIG9g", "mig_profile_layout": []any{"x"}}}},
		"swap that is off":                    {edits: edits{"custom_linux_os_config.swap_file_size": -1}},
		"a version of a runtime that stays":   {edits: edits{"containerd_config.containerd_version": "latest", "runc_config.runc_version": "banana"}},
		"a cluster for an image": {edits: edits{"pre_provision_only": true, "api_server_config.api_server_name": "https://x:443", "kubernetes_ca_cert": "x", "bootstrapping_config.tls_bootstrapping_token": "x",
			"kubelet_config.kubelet_node_labels": map[string]any{"kubernetes.io/role": "x"}, flagsAt: map[string]any{"--register-with-taints": "x", "--tls-cert-file": "/x"},
			"cluster_config.cloud_provider_config.backoff_jitter": "NaN"}},
	}
}

func localDNSHabits() map[string]habit {
	on := func(field string, value any) edits {
		return edits{"local_dns_profile.enable_local_dns": true, "local_dns_profile." + field: value}
	}
	profile := func(get func(*aksnodeconfigv1.LocalDnsProfile) any) func(*aksnodeconfigv1.Configuration) any {
		return func(c *aksnodeconfigv1.Configuration) any { return get(c.GetLocalDnsProfile()) }
	}
	return map[string]habit{
		"no limit of CPU": {edits: on("cpu_limit_in_milli_cores", 0), notes: []string{"local_dns_profile.cpu_limit_in_milli_cores: it counts as the default, 2000"},
			reads: profile(func(p *aksnodeconfigv1.LocalDnsProfile) any { return p.GetCpuLimitInMilliCores() }), want: int32(2000)},
		"no limit of memory": {edits: on("memory_limit_in_mb", 0), notes: []string{"local_dns_profile.memory_limit_in_mb: it counts as the default, 128"}},
		"a hasty refresh":    {edits: on("hosts_plugin_refresh_interval_in_seconds", 1), notes: []string{"local_dns_profile.hosts_plugin_refresh_interval_in_seconds: it counts as 5, which is the least"}},
		"a policy in lower case": {edits: on("vnet_dns_overrides", map[string]any{".": map[string]any{"forward_policy": "random"}}),
			notes: []string{"local_dns_profile.vnet_dns_overrides[.].forward_policy: it is not exactly one of Sequential, Random, RoundRobin: it counts as Sequential"},
			reads: profile(func(p *aksnodeconfigv1.LocalDnsProfile) any { return p.GetVnetDnsOverrides()["."].GetForwardPolicy() }), want: "Sequential"},
		"zones with a star": {edits: on("kube_dns_overrides", map[string]any{"*.example.com": map[string]any{"forward_policy": "RoundRobin", "serve_stale": "verify"}})},
		"names with blanks": {edits: on("critical_fqdns", []any{" mcr.microsoft.com ", ""}), notes: []string{"local_dns_profile.critical_fqdns[1]: it is empty and left out"}},
	}
}

func certificateHabits(t *testing.T) map[string]habit {
	plain, curve, serial := selfSigned(t), foreignCurve(t), negativeSerial(t)
	cas := func(text string) edits { return edits{"custom_ca_certs": []any{text}} }
	first := func(c *aksnodeconfigv1.Configuration) any { return c.GetCustomCaCerts()[0] }
	key := privateKeyBlock(t)
	return map[string]habit{
		"a curve that Go does not know": {edits: cas(armour("CERTIFICATE", curve))},
		"a serial below zero":           {edits: cas(armour("CERTIFICATE", serial))},
		"a trusted certificate":         {edits: cas(armour("TRUSTED CERTIFICATE", append(bytes.Clone(plain), trustOfServers...)))},
		"the old name of a certificate": {edits: cas(armour("X509 CERTIFICATE", plain)), notes: []string{"custom_ca_certs[0]: of its PEM blocks only the certificates count"},
			reads: first, want: armour("CERTIFICATE", plain)},
		"a key beside a certificate": {edits: cas(encode(append(pem.EncodeToMemory(key), decode64(t, armour("CERTIFICATE", plain))...))),
			notes: []string{"custom_ca_certs[0]: of its PEM blocks only the certificates count"}, reads: first, want: armour("CERTIFICATE", plain)},
		"blanks around base64": {edits: edits{"http_proxy_config.proxy_trusted_ca": "  " + armour("CERTIFICATE", plain) + " \n"}, notes: []string{"http_proxy_config.proxy_trusted_ca: blanks in base64 do not count"},
			reads: func(c *aksnodeconfigv1.Configuration) any { return c.GetHttpProxyConfig().GetProxyTrustedCa() }, want: armour("CERTIFICATE", plain)},
		"blanks in PEM":         {edits: cas(encode([]byte(strings.ReplaceAll(string(decode64(t, armour("CERTIFICATE", plain))), "\n", "  \r\n"))))},
		"empty items among CAs": {edits: edits{"custom_ca_certs": []any{"", armour("CERTIFICATE", plain)}}, notes: []string{"custom_ca_certs[0]: it is empty and left out"}, reads: first, want: armour("CERTIFICATE", plain)},
		"a public key":          {edits: edits{"api_server_config.api_server_public_key": armour("PUBLIC KEY", publicKey(t))}},
		"a public key without 64": {edits: edits{"api_server_config.api_server_public_key": "ssh-ed25519 AAAA"}, notes: []string{"api_server_config.api_server_public_key: no base64: it counts as not set"},
			reads: func(c *aksnodeconfigv1.Configuration) any { return c.GetApiServerConfig().GetApiServerPublicKey() }, want: ""},
	}
}

// What OpenSSL refuses is refused, and what it takes is taken: it is who reads these certificates on the machine.
func TestAnchorsAreOpenSSLs(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Fatalf("%v: install the package openssl, which has it", err)
	}
	plain := selfSigned(t)
	for name, c := range map[string]struct {
		kind string
		der  []byte
	}{
		"plain": {"CERTIFICATE", plain}, "curve": {"CERTIFICATE", foreignCurve(t)}, "serial": {"CERTIFICATE", negativeSerial(t)},
		"trusted": {"TRUSTED CERTIFICATE", append(bytes.Clone(plain), trustOfServers...)}, "old": {"X509 CERTIFICATE", plain},
		"cut": {"CERTIFICATE", plain[:len(plain)-1]}, "no ASN.1": {"CERTIFICATE", []byte("hello")}, "empty": {"CERTIFICATE", nil},
		"a key": {"PRIVATE KEY", privateKeyBlock(t).Bytes}, "a sequence": {"CERTIFICATE", []byte{0x30, 3, 2, 1, 1}},
	} {
		text := armour(c.kind, c.der)
		cmd := exec.Command(openssl, "x509", "-noout")
		cmd.Stdin = bytes.NewReader(decode64(t, text))
		reads := cmd.Run() == nil
		counts, _ := onlyCertificates(text)
		if accepted := anchors(counts) == ""; accepted != reads {
			t.Errorf("%s: accepted %v, OpenSSL reads it: %v (%s)", name, accepted, reads, anchors(counts))
		}
	}
}

// What the whole of kubelet's side trusts is read by Go.
func TestKubeletsCAsAreGos(t *testing.T) {
	for name, der := range map[string][]byte{"curve": foreignCurve(t), "serial": negativeSerial(t)} {
		_, err := Decode(edits{"kubernetes_ca_cert": armour("CERTIFICATE", der)}.document(t))
		if err == nil || !strings.Contains(err.Error(), "PEM block 1 is no certificate") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Validate tells clients what a node would say, and leaves their configuration as it is.
func TestValidateLeavesTheConfigurationAlone(t *testing.T) {
	for name, h := range habits(t) {
		doc, err := Read(h.edits.document(t))
		if err != nil {
			t.Fatal(err)
		}
		before := proto.CloneOf(doc.Config)
		if list := Validate(doc.Config); len(list) > 0 || !proto.Equal(before, doc.Config) {
			t.Errorf("%s: %v", name, list)
		}
	}
}

// TestLimitsAreSystemds has systemd read what this package takes for limits, and what not.
func TestLimitsAreSystemds(t *testing.T) {
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Fatalf("%v: install the package systemd, which has it", err)
	}
	values := []string{"1048576", "infinity", "10:5", "5:10", "1M", "0x10", "010", "08", "+5", "-1", "1 M", "64M", "64MiB", "1.5G", "1G500M", "500M1G", "1G 500M",
		"64m", "64K:infinity", "infinity:5", "1e3", "99999999999999999999", "5 : 10", "0b11", "0o17", "1.", ".5", "0", "1G1G"}
	var unit strings.Builder
	unit.WriteString("[Service]\nExecStart=/bin/true\n")
	for _, v := range values {
		fmt.Fprintf(&unit, "LimitNOFILE=%s\nLimitMEMLOCK=%s\n", v, v)
	}
	path := t.TempDir() + "/limits.service"
	if err := os.WriteFile(path, []byte(unit.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	out, _ := exec.Command(verify, "verify", "--man=no", path).CombinedOutput()
	for i, v := range values {
		for j, check := range []func(string) string{limitOfCount, limitOfSize} {
			refused := strings.Contains(string(out), fmt.Sprintf("limits.service:%d: ", 3+2*i+j))
			if got := check(v); (got != "") != refused {
				t.Errorf("%q (%d): %q, systemd refuses it: %v", v, j, got, refused)
			}
		}
	}
	if !strings.Contains(string(out), "limits.service:7: ") {
		t.Errorf("systemd took everything: %s", out)
	}
}

func encode(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func decode64(t *testing.T, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func armour(kind string, der []byte) string {
	return encode(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func selfSigned(t *testing.T) []byte {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(77)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// negativeSerial is a certificate whose serial 77 became -51.
func negativeSerial(t *testing.T) []byte {
	return replaced(t, selfSigned(t), []byte{2, 1, 77}, []byte{2, 1, 0xcd})
}

// foreignCurve is a certificate whose key is of secp256k1.
func foreignCurve(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/secp256k1.pem")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if _, err := x509.ParseCertificate(block.Bytes); err == nil {
		t.Fatal("Go reads it")
	}
	return block.Bytes
}

func replaced(t *testing.T, der, from, to []byte) []byte {
	t.Helper()
	if bytes.Count(der, from) != 1 || len(from) != len(to) {
		t.Fatalf("%x stands %d times in the certificate, and %d bytes become %d", from, bytes.Count(der, from), len(from), len(to))
	}
	out := bytes.Replace(der, from, to, 1)
	if _, err := x509.ParseCertificate(out); err == nil {
		t.Fatal("Go reads it")
	}
	return out
}

// trustOfServers is what a TRUSTED CERTIFICATE has behind it: SEQUENCE { SEQUENCE { serverAuth } }.
var trustOfServers = []byte{0x30, 0x0c, 0x30, 0x0a, 0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01}

func publicKey(t *testing.T) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(newKey(t).Public())
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func privateKeyBlock(t *testing.T) *pem.Block {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	return &pem.Block{Type: "PRIVATE KEY", Bytes: der}
}

func privateKeyPEM(t *testing.T) string {
	t.Helper()
	block := privateKeyBlock(t)
	return armour(block.Type, block.Bytes)
}
