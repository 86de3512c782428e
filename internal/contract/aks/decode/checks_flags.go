package decode

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/internal/contract/value"
)

// flagRule is what becomes of the value of one flag of kubelet.
type flagRule struct {
	must   string
	reader *reader
	check  func(string) string
	readAs string
	read   reading
}

var (
	kubeletTaints    = &reader{"kubelet", "`RegisterWithTaintsVar`, pkg/util/flag"}
	kubeletNodeIP    = &reader{"kubelet", "component-helpers `ParseNodeIPArgument`"}
	kubeletHostname  = &reader{"kubelet, API server", "component-helpers `GetHostname`; names of Nodes are DNS names, and values of a label"}
	kubeletBools     = &reader{"kubelet", "pflag: `strconv.ParseBool`"}
	kubeletMaps      = &reader{"kubelet", "component-base `flag.MapStringString`, `parseResourceList`"}
	kubeletThreshold = &reader{"kubelet", "component-base `flag.LangleSeparatedMapStringString`, `ParseThresholdConfig`"}
	kubeletGates     = &reader{"kubelet", "component-base `flag.MapStringBool`"}
	kubeletJoins     = &reader{"kubelet", "without it kubelet joins no cluster; berth keeps the file"}
	kubeletPlugins   = &reader{"kubelet", "`RegisterCredentialProviderPlugins`, pkg/credentialprovider/plugin"}
	kubeletServing   = &reader{"kubelet", "`InitializeTLS`, cmd/kubelet/app/server.go"}
	systemdVariables = &reader{"systemd", "`env_value_is_valid`, basic/env-util.c: flags are in a variable of kubelet's unit"}
)

// flagRules are for the flags whose wrong value keeps kubelet from starting or the node from registering, or that
// berth makes something of. Others are kubelet's alone: they depend on its version.
var flagRules = map[string]flagRule{
	"--node-labels":          {must: "as `kubelet_node_labels`", reader: kubeletLabels, check: orNone(labelList)},
	"--register-with-taints": {must: "`key[=value]:effect`, each key and effect once, no blanks", reader: kubeletTaints, check: orNone(taintList)},
	"--node-ip": {must: "one IP address, or one IPv4 and one IPv6 address", reader: kubeletNodeIP, check: orNone(addressPair),
		readAs: "without what is no IP address", read: nodeAddresses},
	"--kube-reserved":     {must: "as `kube_reserved`", reader: kubeletMaps, check: pairs("=", reservation)},
	"--system-reserved":   {must: "as `system_reserved`", reader: kubeletMaps, check: pairs("=", reservation)},
	"--eviction-hard":     {must: "as `eviction_hard`, with `<` between signal and value", reader: kubeletThreshold, check: pairs("<", eviction)},
	"--eviction-soft":     {must: "as `eviction_soft`, with `<` between signal and value", reader: kubeletThreshold, check: pairs("<", eviction)},
	"--feature-gates":     {must: "`name=true` or `name=false`", reader: kubeletGates, check: pairs("=", gate)},
	"--tls-cipher-suites": {must: "as `tls_cipher_suites`", reader: kubeletCiphers, check: orNone(listOf(cipherSuite))},

	"--hostname-override": {must: "a DNS name of at most 63 characters", reader: kubeletHostname, check: orNone(nodeName)},
	"--cgroup-driver":     {readAs: "cgroupfs where it is not systemd, as kubelet reads it", read: anyOtherIs("cgroupfs", "cgroupfs", "systemd")},

	"--protect-kernel-defaults":    {must: "a boolean: `true`, `True`, `1` …", reader: kubeletBools, check: truth},
	"--rotate-certificates":        {must: "a boolean: `true`, `True`, `1` …", reader: kubeletBools, check: truth},
	"--rotate-server-certificates": {must: "a boolean: `true`, `True`, `1` …", reader: kubeletBools, check: truth},

	"--kubeconfig":           {must: "a path", reader: kubeletJoins, check: placed, readAs: absoluteFlag, read: under("/")},
	"--cert-dir":             {must: "a path", reader: kubeletJoins, check: placed, readAs: absoluteFlag, read: under("/")},
	"--bootstrap-kubeconfig": {readAs: absoluteFlag, read: under("/")},
	"--config":               {readAs: absoluteFlag, read: under("/")},
	"--config-dir":           {readAs: absoluteFlag, read: under("/")},
	certFlag:                 {must: "this and " + keyFlag + ", or neither", reader: kubeletServing, readAs: absoluteFlag, read: under("/")},
	keyFlag:                  {must: "this and " + certFlag + ", or neither", reader: kubeletServing, readAs: absoluteFlag, read: under("/")},
	providerConfigFlag:       {must: "this and " + providerBinFlag + ", or neither", reader: kubeletPlugins, readAs: absoluteFlag, read: under("/")},
	providerBinFlag:          {must: "this and " + providerConfigFlag + ", or neither", reader: kubeletPlugins, readAs: absoluteFlag, read: under("/")},
}

const absoluteFlag = "below / where it is relative, without . and .. and a slash at its end"

func kubeletFlag(name, value string) string {
	if want := oneLine(value); want != "" {
		return want
	}
	if c := flagRules[name].check; c != nil {
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

// placed is a path that berth can keep something at.
func placed(s string) string { return unless(s != "" && s != "/", "expected a path") }

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
	return notNegative(value)
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

// nodeName: kubelet drops spaces around it and writes it in lower case.
func nodeName(s string) string {
	return value.NodeName(strings.ToLower(strings.TrimSpace(s)))
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
