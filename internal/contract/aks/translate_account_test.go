package aks

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/desired"
)

// variants are configurations that between them take every way through the
// translation.
func variants(t testing.TB) map[string]*aksnodeconfigv1.Configuration {
	full := func(change func(*aksnodeconfigv1.Configuration)) *aksnodeconfigv1.Configuration {
		cfg := sample(t, "full.json")
		cfg.PreProvisionOnly = false
		change(cfg)
		return cfg
	}
	return map[string]*aksnodeconfigv1.Configuration{
		"minimal": sample(t, "minimal.json"),
		"full":    full(func(*aksnodeconfigv1.Configuration) {}),
		"prepared image": full(func(c *aksnodeconfigv1.Configuration) {
			c.PreProvisionOnly = true
			c.NeedsCgroupv2 = proto.Bool(true)
		}),
		"client certificate": full(func(c *aksnodeconfigv1.Configuration) {
			c.BootstrappingConfig = nil
			c.CseTimeout = proto.Int32(300)
			c.KubeletConfig.EnableKubeletConfigFile = false
			c.KubeBinaryConfig.CustomKubeBinaryUrl = ""
			c.NetworkConfig.NetworkPlugin = aksnodeconfigv1.NetworkPlugin_NETWORK_PLUGIN_AZURE
		}),
		"attested": full(func(c *aksnodeconfigv1.Configuration) {
			c.BootstrappingConfig.TlsBootstrappingToken = nil
			c.BootstrappingConfig.BootstrappingAuthMethod = aksnodeconfigv1.BootstrappingAuthMethod_BOOTSTRAPPING_AUTH_METHOD_SECURE_TLS_BOOTSTRAPPING
			c.KubeletConfig.KubeletClientKey, c.KubeletConfig.KubeletClientCertContent = "", ""
			c.EnableSsh = proto.Bool(true)
			c.DisablePubkeyAuth = proto.Bool(false)
			c.CustomCloudConfig.CustomCloudEnvName = "other"
			c.BootstrapProfileContainerRegistryServer, c.ClusterConfig.Location = "", " China East 2"
			c.GpuConfig.EnableNvidia = proto.Bool(false)
			c.LocalDnsProfile.EnableLocalDns = false
			c.ServiceAccountImagePullProfile.Enabled = false
			c.ImdsRestrictionConfig.EnableImdsRestriction = false
			c.CustomLinuxOsConfig.EnableSwapConfig = false
			c.CustomSearchDomainConfig.RealmUser = ""
		}),
		"managed identity": full(func(c *aksnodeconfigv1.Configuration) {
			c.BootstrappingConfig.TlsBootstrappingToken = nil
			c.BootstrappingConfig.BootstrappingAuthMethod = aksnodeconfigv1.BootstrappingAuthMethod_BOOTSTRAPPING_AUTH_METHOD_AZURE_MSI
			c.LocalDnsProfile.EnableHostsPlugin = false
			c.KubernetesVersion = "1.33.2"
			c.EnabledFeatures = map[string]string{"OTHER": "1"}
		}),
		"Arc": full(func(c *aksnodeconfigv1.Configuration) {
			c.ApiServerConfig.ApiServerName = "a.privatelink.westeurope.azmk8s.io"
			c.BootstrappingConfig.TlsBootstrappingToken = nil
			c.BootstrappingConfig.BootstrappingAuthMethod = aksnodeconfigv1.BootstrappingAuthMethod_BOOTSTRAPPING_AUTH_METHOD_ARC_MSI
		}),
		"bare kubenet": full(func(c *aksnodeconfigv1.Configuration) {
			c.KubernetesVersion = "1.26.3"
			c.KubeBinaryConfig.CustomKubeBinaryUrl, c.KubeBinaryConfig.PrivateKubeBinaryUrl = "", ""
			c.ContainerdConfig.ContainerdPackageUrl = "https://packages.example/containerd-1.7.29-linux-amd64.tar.gz"
			c.ContainerdConfig.ContainerdVersion = "1.7.29"
			c.RuncConfig.RuncPackageUrl = "https://packages.example/runc.amd64"
			c.NetworkConfig.NetworkPlugin = aksnodeconfigv1.NetworkPlugin_NETWORK_PLUGIN_KUBENET
			c.NetworkConfig.NetworkPolicy = aksnodeconfigv1.NetworkPolicy_NETWORK_POLICY_NONE
			c.KubeletConfig.KubeletConfigFileConfig.ServerTlsBootstrap = false
			c.ClusterConfig.CloudProviderConfig.BackoffMode = "v1"
			c.KubeletConfig.KubeletFlags["--image-credential-provider-config"] = "/var/lib/kubelet/credential-provider-config.yaml"
			c.KubeletConfig.KubeletFlags["--image-credential-provider-bin-dir"] = "/var/lib/kubelet/credential-provider"
			c.KubeletConfig.KubeletFlags["--streaming-connection-idle-timeout"] = "4h"
		}),
		"versioned": full(func(c *aksnodeconfigv1.Configuration) {
			c.KubeBinaryConfig.CustomKubeBinaryUrl, c.KubeBinaryConfig.PrivateKubeBinaryUrl = "", ""
		}),
		"packaged": full(func(c *aksnodeconfigv1.Configuration) {
			k := c.KubeBinaryConfig
			k.KubeBinaryUrl, k.CustomKubeBinaryUrl, k.PrivateKubeBinaryUrl = "", "", ""
		}),
		"enforced": full(func(c *aksnodeconfigv1.Configuration) {
			c.KubeBinaryConfig.CustomKubeBinaryUrl, c.KubeBinaryConfig.PrivateKubeBinaryUrl = "", ""
		}),
		"tagged": full(func(c *aksnodeconfigv1.Configuration) {
			c.KubeletConfig.KubeletFlags["--rotate-server-certificates"] = "true"
			c.KubeletConfig.KubeletNodeLabels["kubernetes.azure.com/kubelet-serving-ca"] = "cluster"
		}),
		"SSH off": full(func(c *aksnodeconfigv1.Configuration) { c.EnableSsh = proto.Bool(false) }),
		"another file": full(func(c *aksnodeconfigv1.Configuration) {
			c.KubeletConfig.KubeletFlags["--config"] = "/etc/kubernetes/kubelet.yaml"
		}),
		"cgroup flag": full(func(c *aksnodeconfigv1.Configuration) {
			c.KubeletConfig.KubeletFlags["--cgroup-driver"] = "cgroupfs"
			c.KubeletConfig.KubeletFlags["--rotate-server-certificates"] = "true"
			c.KubeletConfig.KubeletFlags["--tls-cert-file"] = "/etc/kubernetes/certs/kubeletserver.crt"
			c.KubeletConfig.KubeletDiskType = aksnodeconfigv1.KubeletDisk_KUBELET_DISK_TEMP_DISK
		}),
	}
}

// TestEverySetFieldIsAccountedFor changes each set field of each variant: the
// state changes exactly if the field counts as part of it.
func TestEverySetFieldIsAccountedFor(t *testing.T) {
	pem := certificate(t)
	for name, cfg := range variants(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := factsOf(name)
			st := translate(t, cfg, facts)
			before := hash(t, st)
			if len(st.Unhandled) > 0 {
				t.Errorf("not acted on: %v", st.Unhandled)
			}
			all := leaves(cfg.ProtoReflect(), "")
			for i := len(name) % stride; i < len(all); i += stride {
				path := all[i]
				other := proto.CloneOf(cfg)
				mutate(other.ProtoReflect(), path, pem)
				changed := hash(t, translate(t, other, facts)) != before
				checkDisposition(t, st, path, ruleOf(path)(&translation{cfg: cfg, facts: facts, state: st}).kind, changed)
			}
		})
	}
}

func checkDisposition(t *testing.T, st *desired.State, path string, kind dispositionKind, changed bool) {
	t.Helper()
	isUnused := slices.ContainsFunc(st.Unused, func(n desired.FieldNote) bool { return n.Path == path && n.Reason != "" })
	isPartial := slices.ContainsFunc(st.Partial, func(n desired.FieldNote) bool { return n.Path == path && n.Reason != "" })
	switch {
	case kind == inState && !changed:
		t.Errorf("%s is said to be in the state, but another value makes no other state", path)
	case kind == unhandled:
		t.Errorf("%s is not acted on", path)
	case kind == unused && changed:
		t.Errorf("%s is said to have no part in the state, but another value makes another state", path)
	case isUnused != (kind == unused) || isPartial != (kind == partly):
		t.Errorf("%s: disposition %d, but unused %v, partial %v", path, kind, isUnused, isPartial)
	}
}

// TestEveryFieldHasAnEntry holds the table to the contract.
func TestEveryFieldHasAnEntry(t *testing.T) {
	known := map[string]bool{}
	for _, path := range descriptorPaths((&aksnodeconfigv1.Configuration{}).ProtoReflect().Descriptor(), "", known) {
		p := path
		for p != "" && accountRules[p] == nil {
			p = p[:max(strings.LastIndexByte(p, '.'), 0)]
		}
		if p == "" {
			t.Errorf("%s has no entry", path)
		}
	}
	for p := range accountRules {
		if !known[p] {
			t.Errorf("%s is no field of the contract", p)
		}
	}
}

// descriptorPaths are the leaves; known collects messages too.
func descriptorPaths(md protoreflect.MessageDescriptor, at string, known map[string]bool) []string {
	var out []string
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		p := at + string(fd.Name())
		known[p] = true
		if isSingleMessage(fd) {
			out = append(out, descriptorPaths(fd.Message(), p+".", known)...)
			continue
		}
		out = append(out, p)
	}
	return out
}

func isSingleMessage(fd protoreflect.FieldDescriptor) bool {
	return fd.Message() != nil && !fd.IsMap() && !fd.IsList()
}

func leaves(m protoreflect.Message, at string) []string {
	var out []string
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		p := at + string(fd.Name())
		if isSingleMessage(fd) {
			out = append(out, leaves(v.Message(), p+".")...)
		} else {
			out = append(out, p)
		}
		return true
	})
	slices.Sort(out)
	return out
}

func mutate(m protoreflect.Message, path, pem string) {
	name, rest, nested := strings.Cut(path, ".")
	fd := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	switch {
	case nested:
		mutate(m.Mutable(fd).Message(), rest, pem)
	case fd.IsMap():
		mutateMap(m.Mutable(fd).Map(), fd)
	case fd.IsList():
		m.Mutable(fd).List().Append(otherValue(fd, fd.Default(), pem))
	default:
		m.Set(fd, otherValue(fd, m.Get(fd), pem))
	}
}

func mutateMap(m protoreflect.Map, fd protoreflect.FieldDescriptor) {
	key := protoreflect.ValueOfString("added").MapKey()
	if fd.Name() == "kubelet_flags" {
		key = protoreflect.ValueOfString(cgroupFlag).MapKey()
		other := "cgroupfs"
		if m.Has(key) && m.Get(key).String() == other {
			other = "systemd"
		}
		m.Set(key, protoreflect.ValueOfString(other))
		return
	}
	if hotfix := protoreflect.ValueOfString("ENABLE_PROVISIONING_HOTFIX").MapKey(); m.Has(hotfix) { // other keys have no effect
		m.Set(hotfix, protoreflect.ValueOfString("other"))
		return
	}
	m.Set(key, m.NewValue())
}

func otherValue(fd protoreflect.FieldDescriptor, v protoreflect.Value, pem string) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(!v.Bool())
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(v.Int()) - 1)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(v.Float() + 1)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum((v.Enum())%protoreflect.EnumNumber(fd.Enum().Values().Len()-1) + 1)
	}
	return protoreflect.ValueOfString(otherText(string(fd.Name()), v.String(), pem))
}

func otherText(name, old, pem string) string {
	switch name {
	case "custom_ca_certs", "proxy_trusted_ca", "kubernetes_ca_cert", "api_server_public_key", "kubelet_client_cert_content", "kubelet_client_key":
		return pem
	case "service_principal_secret":
		return base64.StdEncoding.EncodeToString([]byte("another"))
	case "location":
		return "chinaeast"
	case "backoff_mode":
		return map[string]string{"v1": "v2", "v2": "v1"}[old]
	case "net_ipv4_ip_local_port_range":
		return "1024 65000"
	case "custom_cloud_env_name":
		return "another"
	case "gpu_instance_profile", "mig_profile_layout":
		return "MIG2g"
	}
	if last := len(old) - 1; last == 35 && strings.Count(old, "-") == 4 { // another GUID
		return old[:last] + "f"
	}
	if strings.Contains(old, ".example/") {
		return strings.Replace(old, ".example/", ".test/", 1)
	}
	return old + "x"
}

func certificate(t testing.TB) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
