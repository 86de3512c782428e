package decode

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// ownLabels are the names of kubernetes.io and k8s.io that kubelet may set on its Node;
// ownNamespaces are the prefixes under which it may set any. Source: k8s.io/kubelet/pkg/apis,
// which is not imported because clients link this package; a test compares.
var (
	ownLabels = []string{
		"beta.kubernetes.io/arch",
		"beta.kubernetes.io/instance-type",
		"beta.kubernetes.io/os",
		"failure-domain.beta.kubernetes.io/region",
		"failure-domain.beta.kubernetes.io/zone",
		"kubernetes.io/arch",
		"kubernetes.io/hostname",
		"kubernetes.io/os",
		"node.kubernetes.io/instance-type",
		"topology.kubernetes.io/region",
		"topology.kubernetes.io/zone",
	}
	ownNamespaces = []string{"kubelet.kubernetes.io", "node.kubernetes.io"}
)

func within(namespace, domain string) bool {
	return namespace == domain || strings.HasSuffix(namespace, "."+domain)
}

func labelKey(key string) string {
	if want := qualifiedName(key); want != "" {
		return want
	}
	namespace, _, _ := strings.Cut(key, "/")
	if !strings.Contains(key, "/") || !within(namespace, "kubernetes.io") && !within(namespace, "k8s.io") {
		return ""
	}
	allowed := slices.Contains(ownLabels, key) ||
		slices.ContainsFunc(ownNamespaces, func(own string) bool { return within(namespace, own) })
	return unless(allowed, "kubelet does not start with it: of kubernetes.io and k8s.io it may set its own names "+
		"(hostname, os, arch, instance-type, region, zone) and any under "+strings.Join(ownNamespaces, " and "))
}

func labelValue(value string) string {
	return unless(len(content.IsLabelValue(value)) == 0,
		"expected a label value: at most 63 of letters, digits, -, _ and ., a letter or digit first and last")
}

// qualifiedName is the key of a label or taint.
func qualifiedName(key string) string {
	return unless(len(content.IsLabelKey(key)) == 0,
		"expected a name, or DNS name/name: at most 63 of letters, digits, -, _ and ., a letter or digit first and last")
}

// quantityForm is the grammar of Kubernetes quantities, without a sign: nothing here may be negative.
var quantityForm = regexp.MustCompile(`^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$`)

func quantity(s string) string {
	return unless(quantityForm.MatchString(s), `expected a quantity, e.g. "100m" or "1Gi"`)
}

// threshold of an eviction signal: a quantity or a percentage.
func threshold(s string) string {
	if share, ok := strings.CutSuffix(s, "%"); ok {
		f, err := strconv.ParseFloat(share, 32)
		return unless(err == nil && f >= 0 && f <= 100, "expected 0% to 100%")
	}
	return unless(quantity(s) == "", `expected a quantity or a percentage, e.g. "750Mi" or "10%"`)
}

func quotaPeriod(s string) string {
	d, err := time.ParseDuration(s)
	return unless(err == nil && d >= time.Millisecond && d <= time.Second, "expected a duration from 1ms to 1s")
}
