package decode

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

// crossRules compare fields with each other.
var crossRules = []func(*validator, *aksnodeconfigv1.Configuration){
	clientPair, imageThresholds, softEvictions, providerFlags, servingFiles,
}

func clientPair(v *validator, cfg *aksnodeconfigv1.Configuration) {
	k := cfg.GetKubeletConfig()
	cert, key := k.GetKubeletClientCertContent(), k.GetKubeletClientKey()
	if cert == "" || key == "" || certificates(cert) != "" || privateKey(key) != "" {
		return
	}
	v.complainAt(cfg, certPath, pair(cert, key))
}

const (
	kubeletFile = "kubelet_config.kubelet_config_file_config."
	lowPath     = kubeletFile + "image_gc_low_threshold_percent"
	gracePath   = kubeletFile + "eviction_soft_grace_period"
)

func imageThresholds(v *validator, cfg *aksnodeconfigv1.Configuration) {
	f := cfg.GetKubeletConfig().GetKubeletConfigFileConfig()
	if f == nil || f.ImageGcLowThresholdPercent == nil || f.ImageGcHighThresholdPercent == nil {
		return
	}
	v.complainAt(cfg, lowPath, unless(f.GetImageGcLowThresholdPercent() < f.GetImageGcHighThresholdPercent(),
		"expected less than image_gc_high_threshold_percent"))
}

// softEvictions: kubelet does not start where a soft threshold has no grace period.
func softEvictions(v *validator, cfg *aksnodeconfigv1.Configuration) {
	f := cfg.GetKubeletConfig().GetKubeletConfigFileConfig()
	var missing []string
	for signal := range f.GetEvictionSoft() {
		if _, ok := f.GetEvictionSoftGracePeriod()[signal]; !ok {
			missing = append(missing, signal)
		}
	}
	slices.Sort(missing)
	for _, signal := range missing {
		at, _, _ := v.at(cfg.ProtoReflect(), gracePath)
		here := at.key(signal)
		if !v.unread(here.canonical) {
			v.faults = append(v.faults, fault{location: here, err: field.Required(here.path, "the grace period of this signal in eviction_soft")})
		}
	}
}

func (v *validator) complainAt(cfg *aksnodeconfigv1.Configuration, path, want string) {
	at, fd, value := v.at(cfg.ProtoReflect(), path)
	v.complain(at, fd, value, want)
}
