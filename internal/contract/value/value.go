// Package value has what single values of several contracts must be, by those who
// read them on the machine. A check returns what was expected, or "".
package value

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/berth-dev/berth/internal/lazyregexp"
)

// OwnLabels are the names of kubernetes.io and k8s.io that kubelet may set on its Node;
// OwnNamespaces are the prefixes under which it may set any. Source: k8s.io/kubelet/pkg/apis,
// which is not imported because clients link this package; a test compares.
var (
	OwnLabels = []string{
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
	OwnNamespaces = []string{"kubelet.kubernetes.io", "node.kubernetes.io"}
)

func within(namespace, domain string) bool {
	return namespace == domain || strings.HasSuffix(namespace, "."+domain)
}

// LabelKey is the key of a label that kubelet may set on its Node.
func LabelKey(key string) string {
	if want := QualifiedName(key); want != "" {
		return want
	}
	namespace, _, _ := strings.Cut(key, "/")
	if !strings.Contains(key, "/") || !within(namespace, "kubernetes.io") && !within(namespace, "k8s.io") {
		return ""
	}
	allowed := slices.Contains(OwnLabels, key) ||
		slices.ContainsFunc(OwnNamespaces, func(own string) bool { return within(namespace, own) })
	return unless(allowed, "kubelet does not start with it: of kubernetes.io and k8s.io it may set its own names "+
		"(hostname, os, arch, instance-type, region, zone) and any under "+strings.Join(OwnNamespaces, " and "))
}

// LabelValue is a label's or a taint's.
func LabelValue(value string) string {
	return unless(len(content.IsLabelValue(value)) == 0,
		"expected a label value: at most 63 of letters, digits, -, _ and ., a letter or digit first and last")
}

// NodeName is what a Node is called: the API server takes a DNS name, and kubelet puts it into a
// label.
func NodeName(name string) string {
	return unless(len(content.IsDNS1123Subdomain(name)) == 0 && len(name) <= content.LabelValueMaxLength,
		fmt.Sprintf("expected a DNS name in lower case, of at most %d characters", content.LabelValueMaxLength))
}

// HostName says of a machine's name that no Node can have it, so that the document has to name
// another.
func HostName(name string) string {
	return fmt.Sprintf("the Node would be called %q: %s; give one here, or set the machine's with hostnamectl", name, NodeName(name))
}

// QualifiedName is the key of a label or taint.
func QualifiedName(key string) string {
	return unless(len(content.IsLabelKey(key)) == 0,
		"expected a name, or DNS name/name: at most 63 of letters, digits, -, _ and ., a letter or digit first and last")
}

// The grammar of Kubernetes quantities: resource.ParseQuantity, which is not imported because clients link this
// package; a fuzz test compares. A sign, a point or a suffix without a number is zero there.
var (
	quantityForm = lazyregexp.New(`^([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,18})?$`)
	nothingForm  = lazyregexp.New(`^[+-]?\.?([KMGT]i|[numkMGTPE])?$`)
)

// Quantity is one of Kubernetes.
func Quantity(s string) string {
	_, ok := SignOf(s)
	return unless(ok, `expected a quantity, e.g. "100m" or "1Gi"`)
}

// SignOf a quantity is -1, 0 or 1; false where it is none.
func SignOf(s string) (int, bool) {
	m := quantityForm().FindStringSubmatch(s)
	switch {
	case m == nil:
		return 0, s != "" && nothingForm().MatchString(s)
	case strings.Trim(m[2], "0.") == "":
		return 0, true
	case m[1] == "-":
		return -1, true
	}
	return 1, true
}

// NotNegative is a quantity from 0.
func NotNegative(s string) string {
	sign, ok := SignOf(s)
	return unless(ok && sign >= 0, `expected a quantity, not negative, e.g. "100m" or "1Gi"`)
}

func unless(ok bool, want string) string {
	if ok {
		return ""
	}
	return want
}
