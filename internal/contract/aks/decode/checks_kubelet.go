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

// The grammar of Kubernetes quantities: resource.ParseQuantity, which is not imported because clients link this
// package; a fuzz test compares. A sign, a point or a suffix without a number is zero there.
var (
	quantityForm = regexp.MustCompile(`^([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,18})?$`)
	nothingForm  = regexp.MustCompile(`^[+-]?\.?([KMGT]i|[numkMGTPE])?$`)
)

func quantity(s string) string {
	_, ok := signOf(s)
	return unless(ok, `expected a quantity, e.g. "100m" or "1Gi"`)
}

// signOf a quantity is -1, 0 or 1; false where it is none.
func signOf(s string) (int, bool) {
	m := quantityForm.FindStringSubmatch(s)
	switch {
	case m == nil:
		return 0, s != "" && nothingForm.MatchString(s)
	case strings.Trim(m[2], "0.") == "":
		return 0, true
	case m[1] == "-":
		return -1, true
	}
	return 1, true
}

func notNegative(s string) string {
	sign, ok := signOf(s)
	return unless(ok && sign >= 0, `expected a quantity, not negative, e.g. "100m" or "1Gi"`)
}

// threshold of an eviction signal: a quantity or a percentage.
func threshold(s string) string {
	if share, ok := strings.CutSuffix(s, "%"); ok {
		f, err := strconv.ParseFloat(strings.TrimRight(share, "%"), 32)
		return unless(err == nil && f >= 0 && f <= 100, "expected 0% to 100%")
	}
	sign, ok := signOf(s)
	return unless(ok && sign > 0, `expected a quantity above 0 or a percentage, e.g. "750Mi" or "10%"`)
}

// gracePeriod of a soft threshold.
func gracePeriod(s string) string {
	d, err := time.ParseDuration(s)
	return unless(err == nil && d >= 0, `expected a duration, not negative, e.g. "1m30s"`)
}

func quotaPeriod(s string) string {
	d, err := time.ParseDuration(s)
	return unless(err == nil && d >= time.Millisecond && d <= time.Second, "expected a duration from 1ms to 1s")
}
