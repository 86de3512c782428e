package kubelet

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/component/gates"
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
)

// Withheld says why kubelet is not given a flag that the contract has; "" where
// it is given it.
func (s Settings) Withheld(flag string) string {
	if until := gates.Find(flag).Until; until != "" && !gates.Takes(flag, s.Version) {
		return "kubelet has no use for it since " + until
	}
	if s.KeepsNoServingFiles() && (flag == "--tls-cert-file" || flag == "--tls-private-key-file") {
		return "the cluster issues the serving certificate"
	}
	return ""
}

// ServesClusterCertificate says whether kubelet asks the cluster for its serving
// certificate: then it is given none.
func (s Settings) ServesClusterCertificate() bool {
	return s.isOn(RotationFlag, rotationKey)
}

// KeepsNoServingFiles says whether the serving pair that the contract names is kept
// from kubelet.
func (s Settings) KeepsNoServingFiles() bool { return s.Rotation || s.ServesClusterCertificate() }

// configFileFlag names the configuration file; the contract's word stands last and
// counts.
const configFileFlag = "--config"

// AnotherFile says whether the contract's flags point kubelet at a configuration
// file that is not berth's: then the one of the contract would not be read.
func (s Settings) AnotherFile() bool {
	file, ok := s.Flags[configFileFlag]
	return ok && file != ConfigFile
}

// closed are defaults for a kubelet without configuration file: on its own it
// would let everybody in.
var closed = map[string]string{
	"--anonymous-auth":               "false",
	"--authentication-token-webhook": "true",
	"--authorization-mode":           "Webhook",
	"--client-ca-file":               CAFile,
	"--read-only-port":               "0",
}

// effectiveFlags are the contract's flags without those that do not apply, the
// node's address, and what a kubelet without configuration file needs.
func (s Settings) effectiveFlags() map[string]string {
	out := maps.Clone(s.Flags)
	if out == nil {
		out = map[string]string{}
	}
	maps.DeleteFunc(out, func(flag, _ string) bool { return s.Withheld(flag) != "" })
	if s.Config == nil && s.Flags[configFileFlag] == "" {
		defaults := maps.Clone(closed)
		maps.Copy(defaults, out)
		out = defaults
	}
	if s.NodeIP != "" && out[gates.NodeIPFlag] == "" && gates.Takes(gates.NodeIPFlag, s.Version) {
		out[gates.NodeIPFlag] = s.NodeIP
	}
	return out
}

func (s Settings) labels() map[string]string {
	out := maps.Clone(s.Labels)
	if out == nil {
		out = map[string]string{}
	}
	if s.Rotation {
		out[servingCALabel] = rotationByLabel
	}
	return out
}

// pairs joins names and values, sorted by name.
func pairs(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+m[k])
	}
	return out
}

// flagsFile is 0600 as published: flags may name more than the world should know.
func flagsFile(s Settings) ([]desired.Resource, error) {
	variables := maps.Clone(s.Variables)
	if variables == nil {
		variables = map[string]string{}
	}
	variables[contractFlags] = unitfile.Words(pairs(s.effectiveFlags()))
	variables[nodeLabels] = strings.Join(pairs(s.labels()), ",")
	var b strings.Builder
	b.WriteString("# Written by berth.\n")
	for _, k := range slices.Sorted(maps.Keys(variables)) {
		b.WriteString(unitfile.Variable(k, variables[k]))
	}
	return []desired.Resource{&desired.File{
		Path: FlagsFile, Content: desired.Text(b.String()), Mode: 0o600, Life: desired.Managed,
	}}, nil
}
