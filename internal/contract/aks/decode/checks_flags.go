package decode

import (
	"fmt"
	"slices"
	"strings"
)

// flagChecks are the flags whose wrong value keeps kubelet from starting or the node from registering.
// Others are kubelet's to judge: they depend on its version.
var flagChecks = map[string]func(string) string{
	"--node-labels":          labelList,
	"--register-with-taints": taintList,
	"--cluster-dns":          listOf(ip),
	"--node-ip":              listOf(ip),
	"--kube-reserved":        pairs("=", reservation),
	"--system-reserved":      pairs("=", reservation),
	"--eviction-hard":        pairs("<", eviction),
	"--eviction-soft":        pairs("<", eviction),
	"--feature-gates":        pairs("=", gate),
}

func kubeletFlag(name, value string) string {
	if want := oneLine(value); want != "" {
		return want
	}
	if c := flagChecks[name]; c != nil && value != "" {
		return c(value)
	}
	return ""
}

func listOf(c func(string) string) func(string) string {
	return func(s string) string {
		for item := range strings.SplitSeq(s, ",") {
			if want := c(strings.TrimSpace(item)); want != "" {
				return fmt.Sprintf("%s: %s", item, want)
			}
		}
		return ""
	}
}

func pairs(sep string, c func(name, value string) string) func(string) string {
	return listOf(func(item string) string {
		name, value, ok := strings.Cut(item, sep)
		if !ok {
			return "expected name" + sep + "value"
		}
		return c(name, value)
	})
}

var labelList = pairs("=", func(key, value string) string {
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

func gate(_, value string) string {
	return unless(value == "true" || value == "false", "expected true or false")
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
