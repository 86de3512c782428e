package kubelet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/internal/component/gates"
	"github.com/berth-dev/berth/internal/desired"
)

// header is what a configuration must say of itself; the contract may repeat it.
type header struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
}

// configFile is the configuration as the contract gives it, merged over what
// every configuration has. It is never read into a Go type of some Kubernetes
// version: what that type does not know would be lost.
func configFile(s Settings) ([]desired.Resource, error) {
	if s.Config == nil {
		return nil, nil
	}
	config, err := s.parsedConfig()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "    ")
	if err := enc.Encode(config); err != nil {
		return nil, fmt.Errorf("write kubelet configuration: %w", err)
	}
	flags := []string{"--config=" + ConfigFile}
	if s.readsConfigDir() {
		flags = append(flags, gates.ConfigDirFlag+"="+ConfigDir)
	}
	return []desired.Resource{
		&desired.File{Path: ConfigFile, Content: desired.Bytes(b.Bytes()), Mode: 0o600, Life: desired.Managed},
		dropIn("10-componentconfig.conf", configFlags, flags...),
	}, nil
}

// parsedConfig is the configuration without what does not apply to this kubelet.
func (s Settings) parsedConfig() (map[string]any, error) {
	config, err := object(header{Kind: "KubeletConfiguration", APIVersion: "kubelet.config.k8s.io/v1beta1"})
	if err != nil {
		return nil, err
	}
	given := map[string]any{}
	dec := json.NewDecoder(bytes.NewReader(s.Config))
	dec.UseNumber()
	if err := dec.Decode(&given); err != nil {
		return nil, fmt.Errorf("read kubelet configuration: %w", err)
	}
	maps.Copy(config, given)
	if !gates.Takes(gates.StreamingFlag, s.Version) {
		delete(config, "streamingConnectionIdleTimeout")
	}
	if s.KeepsNoServingFiles() {
		delete(config, "tlsCertFile")
		delete(config, "tlsPrivateKeyFile")
	}
	return config, nil
}

func object(v any) (map[string]any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, json.Unmarshal(b, &out)
}

// setting is what kubelet ends up with: the flag, else the top-level field of
// the configuration file, else "".
func (s Settings) setting(flag, key string) string {
	if v, ok := s.Flags[flag]; ok {
		return v
	}
	var given map[string]any
	if s.Config == nil || json.Unmarshal(s.Config, &given) != nil || given[key] == nil {
		return ""
	}
	return fmt.Sprint(given[key])
}

// file is a setting that names a file, as kubelet finds it: a relative path in
// a flag begins where its service runs, one in the configuration file where
// that file is.
func (s Settings) file(flag, key string) string {
	at := path.Dir(ConfigFile)
	if _, ok := s.Flags[flag]; ok {
		at = "/"
	}
	switch p := s.setting(flag, key); {
	case p == "":
		return ""
	case path.IsAbs(p):
		return path.Clean(p)
	default:
		return path.Join(at, p)
	}
}

// isOn reads a boolean as kubelet does.
func (s Settings) isOn(flag, key string) bool {
	on, err := strconv.ParseBool(s.setting(flag, key))
	return err == nil && on
}

// ReservedSlice is the slice that resources of kubelet and containerd are
// reserved for, where it is one of its own: then both services belong to it.
func (s Settings) ReservedSlice() string {
	name := strings.TrimPrefix(s.setting("--kube-reserved-cgroup", "kubeReservedCgroup"), "/")
	if name != "kubereserved.slice" {
		return ""
	}
	return name
}

// ProtectsKernelDefaults says whether kubelet demands kernel parameters instead
// of setting them.
func (s Settings) ProtectsKernelDefaults() bool {
	return s.isOn("--protect-kernel-defaults", "protectKernelDefaults")
}
