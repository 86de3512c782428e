package decode

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/util/validation/field"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

const currentVersion = "v1"

// versions that can be read. v0 has the same fields.
var versions = []string{currentVersion, "v0"}

// always is what even an image needs: which contract, and which Kubernetes is in it.
var always = []string{"kubernetes_version"}

// toJoin is what a member of a cluster needs besides: the API server, and the CA that it is trusted by. The
// names in azure.json may be empty: networks without a route table have none, and kubelet needs none of them.
var toJoin = []string{
	"api_server_config.api_server_name",
	"kubernetes_ca_cert",
}

func (v *validator) required(cfg *aksnodeconfigv1.Configuration) {
	v.version(cfg)
	v.need(cfg, always, "every node needs it")
	if cfg.GetPreProvisionOnly() {
		return
	}
	v.need(cfg, toJoin, "a node that joins a cluster needs it")
	v.credential(cfg)
}

func (v *validator) version(cfg *aksnodeconfigv1.Configuration) {
	at, fd, value := v.at(cfg.ProtoReflect(), "version")
	switch version := value.String(); {
	case slices.Contains(versions, version):
	case version == "":
		v.missing(at, "the version of the contract: "+currentVersion)
	default:
		v.errs = append(v.errs, fieldError{location: at, err: field.NotSupported(at.path, shown(fd, version), versions)})
	}
}

func (v *validator) need(cfg *aksnodeconfigv1.Configuration, paths []string, why string) {
	for _, path := range paths {
		if at, _, value := v.at(cfg.ProtoReflect(), path); strings.TrimSpace(value.String()) == "" {
			v.missing(at, why)
		}
	}
}

func (v *validator) missing(at location, why string) {
	if !v.unread(at.canonical) {
		v.errs = append(v.errs, fieldError{location: at, err: field.Required(at.path, why)})
	}
}

const (
	tokenPath = "bootstrapping_config.tls_bootstrapping_token"
	keyPath   = "kubelet_config.kubelet_client_key"
	certPath  = "kubelet_config.kubelet_client_cert_content"
)

// credential: kubelet gets in with a token, with a certificate and its key, or by an identity of the machine.
func (v *validator) credential(cfg *aksnodeconfigv1.Configuration) {
	kubelet := cfg.GetKubeletConfig()
	hasKey, hasCert := kubelet.GetKubeletClientKey() != "", kubelet.GetKubeletClientCertContent() != ""
	switch {
	case cfg.GetBootstrappingConfig().GetTlsBootstrappingToken() != "", hasKey && hasCert, byIdentity(cfg):
	case hasKey:
		v.missingAt(cfg.ProtoReflect(), certPath, "the certificate of kubelet_client_key")
	case hasCert:
		v.missingAt(cfg.ProtoReflect(), keyPath, "the key of kubelet_client_cert_content")
	default:
		v.missingAt(cfg.ProtoReflect(), tokenPath, "kubelet needs a first credential: this token, a client certificate with its key, or an identity method")
	}
}

func (v *validator) missingAt(m protoreflect.Message, path, why string) {
	at, _, _ := v.at(m, path)
	v.missing(at, why)
}

func byIdentity(cfg *aksnodeconfigv1.Configuration) bool {
	switch cfg.GetBootstrappingConfig().GetBootstrappingAuthMethod() {
	case aksnodeconfigv1.BootstrappingAuthMethod_BOOTSTRAPPING_AUTH_METHOD_SECURE_TLS_BOOTSTRAPPING,
		aksnodeconfigv1.BootstrappingAuthMethod_BOOTSTRAPPING_AUTH_METHOD_ARC_MSI,
		aksnodeconfigv1.BootstrappingAuthMethod_BOOTSTRAPPING_AUTH_METHOD_AZURE_MSI:
		return true
	}
	return false
}
