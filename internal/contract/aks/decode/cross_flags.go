package decode

import (
	"strconv"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

// Flags of which kubelet wants both or neither.
const (
	providerConfigFlag = "--image-credential-provider-config"
	providerBinFlag    = "--image-credential-provider-bin-dir"
	certFlag           = "--tls-cert-file"
	keyFlag            = "--tls-private-key-file"
)

const (
	flagsPath       = "kubelet_config.kubelet_flags"
	servingCertPath = kubeletFile + "tls_cert_file"
	servingKeyPath  = kubeletFile + "tls_private_key_file"
)

func providerFlags(v *validator, cfg *aksnodeconfigv1.Configuration) {
	if !joins(cfg) {
		return
	}
	flags := cfg.GetKubeletConfig().GetKubeletFlags()
	v.both(cfg, setting{flag: providerConfigFlag, value: flags[providerConfigFlag]}, setting{flag: providerBinFlag, value: flags[providerBinFlag]})
}

// servingFiles: the flag counts, then the configuration file. Where the cluster issues the certificate kubelet is
// given neither, and a file of the image may have the other half.
func servingFiles(v *validator, cfg *aksnodeconfigv1.Configuration) {
	flags, file := cfg.GetKubeletConfig().GetKubeletFlags(), cfg.GetKubeletConfig().GetKubeletConfigFileConfig()
	if !readsFile(cfg) {
		file = nil
	}
	issued := file.GetServerTlsBootstrap()
	if value, said := flags["--rotate-server-certificates"]; said {
		issued, _ = strconv.ParseBool(value)
	}
	if another := !readsFile(cfg) && flags["--config"] != ""; another || issued || !joins(cfg) {
		return
	}
	v.both(cfg, effective(flags, certFlag, servingCertPath, file.GetTlsCertFile()), effective(flags, keyFlag, servingKeyPath, file.GetTlsPrivateKeyFile()))
}

// setting is what kubelet ends up with: path is the field of its configuration file, empty for a flag.
type setting struct{ flag, path, value string }

func effective(flags map[string]string, flag, path, inFile string) setting {
	if value, ok := flags[flag]; ok || inFile == "" {
		return setting{flag: flag, value: value}
	}
	return setting{flag: flag, path: path, value: inFile}
}

// both complains about the one that is missing, where the other stands.
func (v *validator) both(cfg *aksnodeconfigv1.Configuration, a, b setting) {
	has, lacks := a, b
	if a.value == "" {
		has, lacks = b, a
	}
	if has.value == "" || lacks.value != "" {
		return
	}
	name, at := has.flag, v.flag(cfg, lacks.flag)
	if has.path != "" {
		_, fd, _ := v.at(cfg.ProtoReflect(), has.path)
		name = string(fd.Name())
		other := map[string]string{servingCertPath: servingKeyPath, servingKeyPath: servingCertPath}[has.path]
		at, _, _ = v.at(cfg.ProtoReflect(), other)
	}
	v.missing(at, "kubelet does not start with "+name+" alone")
}

func (v *validator) flag(cfg *aksnodeconfigv1.Configuration, name string) location {
	at, _, _ := v.at(cfg.ProtoReflect(), flagsPath)
	return v.entry(at, name)
}
