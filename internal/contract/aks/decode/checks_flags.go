package decode

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// flagChecks are the flags whose wrong value keeps kubelet from starting or the node from registering, or that
// berth makes something of. Others are kubelet's alone: they depend on its version.
var flagChecks = map[string]func(string) string{
	"--node-labels":          orNone(labelList),
	"--register-with-taints": orNone(taintList),
	"--cluster-dns":          orNone(listOf(ip)),
	"--node-ip":              orNone(listOf(func(s string) string { return ip(strings.TrimSpace(s)) })),
	"--kube-reserved":        pairs("=", reservation),
	"--system-reserved":      pairs("=", reservation),
	"--eviction-hard":        pairs("<", eviction),
	"--eviction-soft":        pairs("<", eviction),
	"--feature-gates":        pairs("=", gate),

	"--hostname-override": orNone(nodeName),
	"--cgroup-driver":     cgroupDriver,

	"--protect-kernel-defaults":    truth,
	"--rotate-certificates":        truth,
	"--rotate-server-certificates": truth,

	"--kubeconfig":           cleanPath,
	"--bootstrap-kubeconfig": orNone(cleanPath),
	"--cert-dir":             cleanPath,
	"--config":               orNone(cleanPath),
	"--config-dir":           orNone(cleanPath),
	certFlag:                 orNone(cleanPath),
	keyFlag:                  orNone(cleanPath),
	providerConfigFlag:       orNone(cleanPath),
	providerBinFlag:          orNone(cleanPath),
}

func kubeletFlag(name, value string) string {
	if want := oneLine(value); want != "" {
		return want
	}
	if c := flagChecks[name]; c != nil {
		return c(value)
	}
	return ""
}

// orNone is for flags that are off without a value.
func orNone(c func(string) string) func(string) string {
	return func(s string) string {
		if s == "" {
			return ""
		}
		return c(s)
	}
}

// listOf takes items as kubelet's slices do: a space is part of an item.
func listOf(c func(string) string) func(string) string {
	return func(s string) string {
		for item := range strings.SplitSeq(s, ",") {
			if want := c(item); want != "" {
				return fmt.Sprintf("%s: %s", plain(item), want)
			}
		}
		return ""
	}
}

// entries takes items as kubelet's maps do: spaces around names and values, and empty items, do not count.
// Of an item without separator the value is empty.
func entries(sep string, c func(name, value string, whole bool) string) func(string) string {
	return func(s string) string {
		for item := range strings.SplitSeq(s, ",") {
			name, value, whole := strings.Cut(item, sep)
			if item == "" {
				continue
			}
			if want := c(strings.TrimSpace(name), strings.TrimSpace(value), whole); want != "" {
				return fmt.Sprintf("%s: %s", plain(item), want)
			}
		}
		return ""
	}
}

func pairs(sep string, c func(name, value string) string) func(string) string {
	return entries(sep, func(name, value string, whole bool) string {
		if !whole {
			return "expected name" + sep + "value"
		}
		return c(name, value)
	})
}

// labelList: a label without value has an empty one.
var labelList = entries("=", func(key, value string, _ bool) string {
	if want := labelKey(key); want != "" {
		return want
	}
	return labelValue(value)
})

func reservation(name, value string) string {
	if !slices.Contains(reservable, name) {
		return "expected one of: " + strings.Join(reservable, ", ")
	}
	return quantity(value)
}

func eviction(signal, value string) string {
	if !slices.Contains(evictionSignals, signal) {
		return "expected one of: " + strings.Join(evictionSignals, ", ")
	}
	return threshold(value)
}

func gate(_, value string) string { return truth(value) }

// truth is a boolean as kubelet reads one: true, True, 1, t, …
func truth(s string) string {
	_, err := strconv.ParseBool(s)
	return unless(err == nil, "expected true or false")
}

func cgroupDriver(s string) string {
	return unless(s == "cgroupfs" || s == "systemd", "expected one of: cgroupfs, systemd")
}

// nodeName: kubelet drops spaces around it and writes it in lower case.
func nodeName(s string) string {
	return unless(len(content.IsDNS1123Subdomain(strings.ToLower(strings.TrimSpace(s)))) == 0,
		"expected the name of a node: a DNS name")
}

var effects = []string{"NoExecute", "NoSchedule", "PreferNoSchedule"}

// taintList is kubelet's --register-with-taints: key[=value]:effect, key and effect only once.
func taintList(s string) string {
	seen := map[string]bool{}
	return listOf(func(item string) string {
		spec, effect, ok := strings.Cut(item, ":")
		key, value, _ := strings.Cut(spec, "=")
		switch {
		case !ok || !slices.Contains(effects, effect):
			return "expected key[=value]:effect, effect one of: " + strings.Join(effects, ", ")
		case seen[key+":"+effect]:
			return "the taint is there twice"
		}
		seen[key+":"+effect] = true
		if want := qualifiedName(key); want != "" {
			return want
		}
		return labelValue(value)
	})(s)
}
