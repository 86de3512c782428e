package decode

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	kubeletapis "k8s.io/kubelet/pkg/apis"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

func TestRulesNameFieldsOfTheContract(t *testing.T) {
	for name := range byField() {
		full := protoreflect.FullName("aksnodeconfig.v1." + name)
		if _, err := protoregistry.GlobalFiles.FindDescriptorByName(full); err != nil {
			t.Errorf("rule for %s: %v", name, err)
		}
	}
	for path := range features {
		v := validator{}
		if at, _, _ := v.at((&aksnodeconfigv1.Configuration{}).ProtoReflect(), path); at.canonical != path {
			t.Errorf("condition of %s: %s", path, at.canonical)
		}
	}
}

func TestLabelsAreKubelets(t *testing.T) {
	if diff := cmp.Diff(kubeletapis.KubeletLabels(), ownLabels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(kubeletapis.KubeletLabelNamespaces(), ownNamespaces); diff != "" {
		t.Error(diff)
	}
}

func TestValidateSpellsAsTheProto(t *testing.T) {
	cfg := &aksnodeconfigv1.Configuration{Version: "v1", PreProvisionOnly: true, CustomCaCerts: []string{"x"}}
	var got []string
	for _, e := range Validate(cfg) {
		got = append(got, e.Field)
	}
	want := []string{"custom_ca_certs[0]", "kubernetes_version"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestValidateIsDeterministic(t *testing.T) {
	cfg := &aksnodeconfigv1.Configuration{KubeletConfig: &aksnodeconfigv1.KubeletConfig{
		KubeletNodeLabels: map[string]string{"a": "!", "b": "!", "c": "!", "d": "!"},
	}}
	first := Validate(cfg).ToAggregate().Error()
	for range 20 {
		if again := Validate(cfg).ToAggregate().Error(); again != first {
			t.Fatalf("%s\n%s", first, again)
		}
	}
}

func TestClientPair(t *testing.T) {
	doc, err := Decode(sample(t, "full"))
	if err != nil {
		t.Fatal(err)
	}
	half := proto.CloneOf(doc.Config)
	half.BootstrappingConfig, doc.Config.BootstrappingConfig = nil, nil
	half.KubeletConfig.KubeletClientKey = ""
	if got := Validate(half); len(got) != 1 || got[0].Field != keyPath {
		t.Errorf("without key: %v", got)
	}
	other := proto.CloneOf(doc.Config)
	other.KubeletConfig.KubeletClientCertContent = other.KubernetesCaCert
	if got := Validate(other); len(got) != 1 || got[0].Field != certPath {
		t.Errorf("other certificate: %v", got)
	}
}

// Whatever is wrong with a secret, its text is not in the error.
func TestErrorsKeepSecrets(t *testing.T) {
	const secret = "dGhlIHNlY3JldA" // no field takes it: neither token, base64, PEM nor URL
	for _, path := range []string{
		"bootstrapping_config.tls_bootstrapping_token",
		"kubelet_config.kubelet_client_key", "http_proxy_config.https_proxy",
	} {
		for _, value := range []any{"http://u:" + secret + "@:x", []any{secret}, map[string]any{secret: secret}} {
			e := edits{path: value}
			if path == "kubelet_config.kubelet_client_key" { // else nothing reads it
				e["bootstrapping_config.tls_bootstrapping_token"] = nil
			}
			_, err := Decode(e.document(t))
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

func TestURLsAreShownWithoutKeys(t *testing.T) {
	for value, want := range map[string]string{
		"ftp://u:p@x/y?sig=abc":              `"ftp://x/y"`,
		"u:hunter2@registry.example/X":       `"…@registry.example/X"`,
		"u:hun/ter2@registry.example/x":      `"…@registry.example/x"`,
		"registry.example/X y?sig=abc":       `"registry.example/X y"`,
		"registry.example/X@sha256:1":        `"registry.example/X@sha256:1"`,
		"u:p@registry.example/x@sha256:1":    `"…@registry.example/x@sha256:1"`,
		"u:hunter2@registry.example/x@ sha2": `"…@ sha2"`,
	} {
		for _, path := range []string{"kube_binary_config.kube_binary_url", "bootstrap_profile_container_registry_server", "kubelet_config.kubelet_flags.--hostname-override"} {
			_, err := Decode(edited(t, strings.Split(path, "."), value))
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hun") || strings.Contains(err.Error(), "abc") {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

// A value of a newer contract counts as not set, by name and by number.
func TestUnknownValueIsNotSet(t *testing.T) {
	doc, err := Decode(edited(t, []string{"cluster_config", "vm_type"}, 9))
	if err != nil || doc.Config.GetClusterConfig().GetVmType() != 0 {
		t.Errorf("%v, %v", doc, err)
	}
}

func TestRequiredListsAreFields(t *testing.T) {
	v := validator{}
	for _, path := range slices.Concat(always, toJoin, []string{tokenPath, keyPath, certPath, lowPath, gracePath}) {
		if at, _, _ := v.at((&aksnodeconfigv1.Configuration{}).ProtoReflect(), path); at.canonical != path {
			t.Errorf("%s is %s", path, at.canonical)
		}
	}
}

// Swap beside a kubelet that refuses it is refused, in whatever way kubelet is told.
func TestSwapNeedsKubelet(t *testing.T) {
	for name, c := range map[string]struct {
		edit    func(*aksnodeconfigv1.Configuration)
		refused bool
	}{
		"taken":        {func(*aksnodeconfigv1.Configuration) {}, false},
		"nothing said": {func(c *aksnodeconfigv1.Configuration) { c.KubeletConfig.KubeletConfigFileConfig.FailSwapOn = nil }, true},
		"refused": {func(c *aksnodeconfigv1.Configuration) {
			c.KubeletConfig.KubeletConfigFileConfig.FailSwapOn = proto.Bool(true)
		}, true},
		"the flag goes": {func(c *aksnodeconfigv1.Configuration) { c.KubeletConfig.KubeletFlags[swapFlag] = "true" }, true},
		"the flag takes it": {func(c *aksnodeconfigv1.Configuration) {
			c.KubeletConfig.EnableKubeletConfigFile = false
			c.KubeletConfig.KubeletFlags[swapFlag] = "false"
		}, false},
		"no file is read": {func(c *aksnodeconfigv1.Configuration) { c.KubeletConfig.EnableKubeletConfigFile = false }, true},
		"no swap": {func(c *aksnodeconfigv1.Configuration) {
			c.KubeletConfig.KubeletConfigFileConfig.FailSwapOn = nil
			c.CustomLinuxOsConfig.SwapFileSize = 0
		}, false},
		"an image": {func(c *aksnodeconfigv1.Configuration) {
			c.KubeletConfig.KubeletConfigFileConfig.FailSwapOn = nil
			c.PreProvisionOnly = true
		}, false},
	} {
		doc, err := Decode(sample(t, "full"))
		if err != nil {
			t.Fatal(err)
		}
		c.edit(doc.Config)
		got := Validate(doc.Config)
		if is := len(got) == 1 && got[0].Field == "custom_linux_os_config.enable_swap_config"; is != c.refused || len(got) > 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
}
