package decode

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

// crossRules compare fields with each other.
var crossRules = []func(*validator, *aksnodeconfigv1.Configuration){
	clientPair, imageThresholds, softEvictions, allocatable, providerFlags, servingFiles, refusedSwap, localZones,
}

func clientPair(v *validator, cfg *aksnodeconfigv1.Configuration) {
	k := cfg.GetKubeletConfig()
	cert, key := k.GetKubeletClientCertContent(), k.GetKubeletClientKey()
	if !withoutToken(cfg) || cert == "" || key == "" || clientCertificate(cert) != "" || privateKey(key) != "" {
		return
	}
	v.complainAt(cfg, certPath, pair(cert, key))
}

const (
	kubeletFile = "kubelet_config.kubelet_config_file_config."
	lowPath     = kubeletFile + "image_gc_low_threshold_percent"
	highPath    = kubeletFile + "image_gc_high_threshold_percent"
	gracePath   = kubeletFile + "eviction_soft_grace_period"
	enforcePath = kubeletFile + "enforce_node_allocatable"
)

// inFile is kubelet's configuration file where kubelet reads it and none of some flags, which go before it.
func inFile(cfg *aksnodeconfigv1.Configuration, flags ...string) *aksnodeconfigv1.KubeletConfigFileConfig {
	given := cfg.GetKubeletConfig().GetKubeletFlags()
	said := func(flag string) bool { _, ok := given[flag]; return ok }
	if !readsFile(cfg) || slices.ContainsFunc(flags, said) {
		return nil
	}
	return cfg.GetKubeletConfig().GetKubeletConfigFileConfig()
}

// imageThresholds: what is not said has kubelet's default.
func imageThresholds(v *validator, cfg *aksnodeconfigv1.Configuration) {
	f := inFile(cfg, "--image-gc-low-threshold", "--image-gc-high-threshold")
	low, high := int32(80), int32(85)
	at := highPath
	if f != nil && f.ImageGcHighThresholdPercent != nil {
		high = *f.ImageGcHighThresholdPercent
	}
	if f != nil && f.ImageGcLowThresholdPercent != nil {
		low, at = *f.ImageGcLowThresholdPercent, lowPath
	}
	want := map[string]string{
		lowPath:  "expected less than image_gc_high_threshold_percent, which is 85 where nothing is said",
		highPath: "expected more than image_gc_low_threshold_percent, which is 80 where nothing is said",
	}
	v.complainAt(cfg, at, unless(low < high, want[at]))
}

// softEvictions: kubelet does not start where a soft threshold has no grace period. It passes over two thresholds.
func softEvictions(v *validator, cfg *aksnodeconfigv1.Configuration) {
	f := inFile(cfg, "--eviction-soft", "--eviction-soft-grace-period")
	var missing []string
	for signal, value := range f.GetEvictionSoft() {
		if _, ok := f.GetEvictionSoftGracePeriod()[signal]; !ok && value != "0%" && value != "100%" {
			missing = append(missing, signal)
		}
	}
	slices.Sort(missing)
	for _, signal := range missing {
		at, _, _ := v.at(cfg.ProtoReflect(), gracePath)
		v.missing(at.key(signal), "the grace period of this signal in eviction_soft")
	}
}

// allocatable: of what kubelet enforces besides the limits of pods it must be told the cgroup.
func allocatable(v *validator, cfg *aksnodeconfigv1.Configuration) {
	f := inFile(cfg, "--enforce-node-allocatable", "--kube-reserved-cgroup", "--system-reserved-cgroup", "--cgroups-per-qos")
	if f == nil {
		return
	}
	enforced := f.GetEnforceNodeAllocatable()
	any := func(items ...string) bool {
		return slices.ContainsFunc(items, func(i string) bool { return slices.Contains(enforced, i) })
	}
	const system, kube, compressible = "system-reserved", "kube-reserved", "-compressible"
	for _, conflict := range []struct {
		is   bool
		want string
	}{
		{len(slices.Compact(slices.Sorted(slices.Values(enforced)))) < len(enforced), "expected each one once"},
		{any("none") && len(enforced) > 1, "expected none alone"},
		{any(system) && any(system+compressible), "expected one of the two for system-reserved"},
		{any(kube) && any(kube+compressible), "expected one of the two for kube-reserved"},
		{any(system, system+compressible) && f.GetSystemReservedCgroup() == "", "kubelet wants system_reserved_cgroup with it"},
		{any(kube, kube+compressible) && f.GetKubeReservedCgroup() == "", "kubelet wants kube_reserved_cgroup with it"},
		{f.CgroupsPerQos != nil && !f.GetCgroupsPerQos() && !any("none"), "expected none where cgroups_per_qos is off"},
	} {
		if at, _, _ := v.at(cfg.ProtoReflect(), enforcePath); conflict.is {
			v.errs = append(v.errs, fieldError{location: at, err: field.Invalid(at.path, enforced, conflict.want)})
		}
	}
}

// refusedSwap: unless it is told otherwise kubelet does not start where there is swap.
func refusedSwap(v *validator, cfg *aksnodeconfigv1.Configuration) {
	c, flags := cfg.GetCustomLinuxOsConfig(), cfg.GetKubeletConfig().GetKubeletFlags()
	if another := !readsFile(cfg) && flags["--config"] != ""; another || !joins(cfg) || !c.GetEnableSwapConfig() || c.GetSwapFileSize() <= 0 {
		return
	}
	f := inFile(cfg, swapFlag)
	takes := f != nil && f.FailSwapOn != nil && !f.GetFailSwapOn()
	if value, said := flags[swapFlag]; said {
		fails, err := strconv.ParseBool(value)
		takes = err == nil && !fails
	}
	v.complainAt(cfg, "custom_linux_os_config.enable_swap_config", unless(takes, "kubelet does not start beside swap unless fail_swap_on is false"))
}

// healthZone is the zone of the node's name server itself, at both of its addresses.
const healthZone = "health-check.localdns.local"

// localZones: CoreDNS does not start where one address has a zone twice. To it a dot at the end does not count, and
// case does.
func localZones(v *validator, cfg *aksnodeconfigv1.Configuration) {
	if !localDNS(cfg) {
		return
	}
	for _, path := range []string{"local_dns_profile.vnet_dns_overrides", "local_dns_profile.kube_dns_overrides"} {
		at, _, zones := v.at(cfg.ProtoReflect(), path)
		taken := map[string]bool{healthZone: true}
		for _, name := range sortedKeys(zones.Map()) {
			zone := strings.TrimSuffix(name, ".")
			if here := at.key(name); taken[zone] {
				v.errs = append(v.errs, fieldError{location: here, err: field.Duplicate(here.path, name)})
			}
			taken[zone] = true
		}
	}
}

const swapFlag = "--fail-swap-on"

func (v *validator) complainAt(cfg *aksnodeconfigv1.Configuration, path, want string) {
	at, fd, value := v.at(cfg.ProtoReflect(), path)
	v.complain(at, fd, value, want)
}
