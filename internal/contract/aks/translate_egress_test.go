package aks

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/contract/aks/decode"
	"github.com/berth-dev/berth/internal/desired"
)

// Services of a node use the contract's proxy, restart when it changes, and trust
// its CA; an image has the CA alone.
func TestProxyOfServices(t *testing.T) {
	cfg, facts := sample(t, "minimal.json"), machine
	facts.Apt = true
	cfg.HttpProxyConfig = &aksnodeconfigv1.HttpProxyConfig{HttpProxy: "http://berth:hunter2@p.example", HttpsProxy: "http://p.example", ProxyTrustedCa: certificate(t)}
	st := translate(t, cfg, facts)
	for _, unit := range []string{"containerd.service", "kubelet.service"} {
		u := st.Lookup(desired.UnitID(unit)).(*desired.Unit)
		dropIn := desired.FileID("/etc/systemd/system/" + unit + ".d/10-httpproxy.conf")
		if !slices.Contains(u.Triggers, "/etc/berth/proxy.env") || !slices.Contains(u.After, dropIn) || st.Lookup(dropIn) == nil {
			t.Errorf("%s: triggers %v, after %v", unit, u.Triggers, u.After)
		}
	}
	if !slices.Contains(st.Lookup(desired.UnitID("containerd.service")).Order().After, desired.ID("trust:aks-proxy-ca-0")) {
		t.Error("containerd starts before the proxy's CA is trusted")
	}
	if st.Lookup(desired.FileID("/etc/apt/apt.conf.d/95proxy")) == nil || st.Lookup(desired.BlockID("/etc/environment", "proxy")) == nil {
		t.Error("apt or the environment has no proxy")
	}
	if text, err := json.Marshal(st); err != nil || strings.Contains(string(text), "hunter2") || strings.Contains(string(text), "berth:") {
		t.Errorf("the password stands in the state (%v)", err)
	}
	cfg.PreProvisionOnly = true
	for _, r := range translate(t, cfg, facts).Resources {
		if id := string(r.ID()); strings.Contains(id, "proxy") && id != "trust:aks-proxy-ca-0" {
			t.Errorf("%s is in an image", id)
		}
	}
}

// A machine proves its way out before it joins, on the way of its downloads; an image,
// and a cluster that has none, prove nothing.
func TestOutboundCheck(t *testing.T) {
	cfg := sample(t, "minimal.json")
	cfg.OutboundCommand = " curl  -v https://mcr.example/v2/ "
	cfg.HttpProxyConfig = &aksnodeconfigv1.HttpProxyConfig{HttpsProxy: "http://p.example"}
	check := func() *desired.Check {
		c, _ := translate(t, cfg, machine).Lookup(desired.CheckID(desired.CheckOutbound)).(*desired.Check)
		return c
	}
	c := check()
	want := &desired.Check{
		Base: desired.Base{Field: "outbound_command"}, Name: desired.CheckOutbound, Command: []string{"curl", "-v", "https://mcr.example/v2/"},
		Timeout: 320 * time.Second, Unless: desired.ClientCertificateID("/var/lib/kubelet/kubeconfig"),
		Via: &desired.Egress{HTTPSProxy: "http://p.example"},
	}
	if d := cmp.Diff(want, c); d != "" {
		t.Error(d)
	}
	cfg.CseTimeout = proto.Int32(60)
	if c := check(); c.Timeout != 24*time.Second {
		t.Errorf("of a minute it takes %s", c.Timeout)
	}
	for name, none := range map[string]func(*aksnodeconfigv1.Configuration){
		"blank":    func(c *aksnodeconfigv1.Configuration) { c.OutboundCommand = " " },
		"isolated": func(c *aksnodeconfigv1.Configuration) { c.BootstrapProfileContainerRegistryServer = "registry.example" },
		"image":    func(c *aksnodeconfigv1.Configuration) { c.PreProvisionOnly = true },
	} {
		whole := cfg
		cfg = proto.CloneOf(whole)
		if none(cfg); check() != nil {
			t.Errorf("%s: there is a check", name)
		}
		cfg = whole
	}
}

// Downloads go through the contract's proxy and trust its CAs from the first
// byte; the proxy's password is not shown.
func TestEgressOfDownloads(t *testing.T) {
	text, err := base64.StdEncoding.DecodeString(certificate(t))
	if err != nil {
		t.Fatal(err)
	}
	pem := string(text)
	tr := &translation{cfg: &aksnodeconfigv1.Configuration{
		// Of the second OpenSSL makes something, berth does not.
		CustomCaCerts: []string{certificateOf(pem), certificateOf("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n")},
		HttpProxyConfig: &aksnodeconfigv1.HttpProxyConfig{
			HttpsProxy: "http://berth:hunter2@proxy.example:3128", NoProxyEntries: []string{".example"},
			ProxyTrustedCa: certificateOf(pem + pem),
		},
	}, state: &desired.State{}}
	fetched := &desired.Artifact{Name: "kubernetes", URLs: []string{"https://x/y"}}
	tr.state.Add(fetched, &desired.Artifact{Name: "cni"})
	if err := tr.egress(); err != nil {
		t.Fatal(err)
	}
	if via := fetched.Via; via == nil || len(via.CAs) != 2 || via.CAs[1] != pem+pem || via.HTTPSProxy.Reveal() != "http://berth:hunter2@proxy.example:3128" || len(via.NoProxy) != 1 {
		t.Errorf("got %+v", via)
	}
	printed, err := json.Marshal(fetched)
	if err != nil || strings.Contains(string(printed), "hunter2") {
		t.Errorf("%v: %s", err, printed)
	}
	sovereign := &translation{state: tr.state, cfg: &aksnodeconfigv1.Configuration{
		AuthConfig:        &aksnodeconfigv1.AuthConfig{TenantId: "tenant", AssignedIdentityId: "kubelet-identity"},
		CustomCloudConfig: &aksnodeconfigv1.CustomCloudConfig{ContainerRegistryDnsSuffix: "AzureCR.example."},
	}}
	pulled := &desired.Artifact{Name: "runc", URLs: []string{"oci://x.azurecr.example/runc:v1"}}
	fetched.Via = nil
	sovereign.state.Add(pulled)
	want := &desired.Egress{Identity: &desired.ManagedIdentity{ClientID: "kubelet-identity", TenantID: "tenant", Suffixes: []string{".azurecr.example"}}}
	if err := sovereign.egress(); err != nil || fetched.Via != nil || !cmp.Equal(pulled.Via, want) {
		t.Errorf("%v: %+v, %+v", err, fetched.Via, pulled.Via)
	}
	suffix := sample(t, "full.json")
	suffix.CustomCloudConfig.ContainerRegistryDnsSuffix = ".AzureCR.example."
	suffix.KubeletConfig.KubeletFlags = map[string]string{"--image-credential-provider-config": "/etc/p.yaml", "--image-credential-provider-bin-dir": "/opt/p"}
	if file := golden.File(t, translate(t, suffix, machine), "/etc/p.yaml"); !strings.Contains(string(file.Content.Data()), "- '*.azurecr.example'\n") {
		t.Errorf("%s", file.Content.Data())
	}
	plain := &translation{cfg: &aksnodeconfigv1.Configuration{}, state: &desired.State{Resources: []desired.Resource{fetched}}}
	fetched.Via = nil
	if err := plain.egress(); err != nil || fetched.Via != nil {
		t.Errorf("%v, %+v", err, fetched.Via)
	}
}

func certificateOf(pem string) string { return base64.StdEncoding.EncodeToString([]byte(pem)) }

// Every program may come from a registry, with or without the scheme before the
// reference, and then as the contract's identity.
func TestProgramsFromARegistry(t *testing.T) {
	for _, scheme := range []string{"", "oci://"} {
		cfg := sample(t, "minimal.json")
		from := func(name string) string { return scheme + "registry.example/oss/" + name + ":v1" }
		cfg.AuthConfig.AssignedIdentityId = "kubelet-identity"
		cfg.KubeBinaryConfig = &aksnodeconfigv1.KubeBinaryConfig{KubeBinaryUrl: from("kubernetes"), LinuxCredentialProviderUrl: from("provider")}
		cfg.ContainerdConfig = &aksnodeconfigv1.ContainerdConfig{ContainerdPackageUrl: from("containerd"), ContainerdVersion: "2.2.9"}
		cfg.RuncConfig = &aksnodeconfigv1.RuncConfig{RuncPackageUrl: from("runc")}
		cfg.NetworkConfig = &aksnodeconfigv1.NetworkConfig{CniPluginsUrl: from("cni")}
		cfg.KubeletConfig = &aksnodeconfigv1.KubeletConfig{KubeletFlags: map[string]string{
			"--image-credential-provider-config": "/etc/p.yaml", "--image-credential-provider-bin-dir": "/opt/p"}}
		if errs := decode.Validate(cfg); len(errs) > 0 {
			t.Fatal(errs)
		}
		var got []string
		for _, r := range translate(t, cfg, machine).Resources {
			a, ok := r.(*desired.Artifact)
			if !ok {
				continue
			}
			got = append(got, a.URLs...)
			if a.Via == nil || a.Via.Identity.ClientID != "kubelet-identity" {
				t.Errorf("%s is not pulled as the identity: %+v", a.Name, a.Via)
			}
		}
		slices.Sort(got)
		want := []string{"oci://registry.example/oss/cni:v1", "oci://registry.example/oss/containerd:v1",
			"oci://registry.example/oss/kubernetes:v1", "oci://registry.example/oss/provider:v1", "oci://registry.example/oss/runc:v1"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", scheme, diff)
		}
	}
}
