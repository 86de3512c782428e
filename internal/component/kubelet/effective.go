package kubelet

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"

	"github.com/spf13/pflag"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/yaml"
)

// CommandLine is what kubelet's flags say of its configuration.
type CommandLine struct {
	// File and Dir are the configuration file and the directory of those of others; "":
	// none.
	File, Dir string
	// set are the fields of the configuration that a flag sets.
	set map[string]any
}

// ReadCommandLine reads kubelet's arguments, without its name. Flags that are not about what
// berth asks for are passed over. Source: cmd/kubelet/app/options/options.go of Kubernetes.
func ReadCommandLine(args []string) (CommandLine, error) {
	var c CommandLine
	fs := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	fs.Usage = func() {}
	fs.ParseErrorsAllowlist.UnknownFlags = true
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	fs.StringVar(&c.File, "config", "", "")
	fs.StringVar(&c.Dir, "config-dir", "", "")
	hard := thresholds{}
	values := map[string]func() any{
		"cluster-dns":          list(fs.StringSlice("cluster-dns", nil, "")),
		"eviction-hard":        func() any { return map[string]any(hard) },
		"fail-cgroupv1":        plainly(fs.Bool("fail-cgroupv1", false, "")),
		"fail-swap-on":         plainly(fs.Bool("fail-swap-on", true, "")),
		"healthz-bind-address": plainly(fs.String("healthz-bind-address", "", "")),
		"healthz-port":         number(fs.Int32("healthz-port", 0, "")),
		"pod-cidr":             plainly(fs.String("pod-cidr", "", "")),
		"port":                 number(fs.Int32("port", 0, "")),
		"resolv-conf":          plainly(fs.String("resolv-conf", "", "")),
	}
	fs.Var(hard, "eviction-hard", "")
	if err := fs.Parse(args); err != nil {
		return CommandLine{}, fmt.Errorf("read kubelet's flags: %w", err)
	}
	c.File, c.Dir = absolute(c.File), absolute(c.Dir)
	c.set = map[string]any{}
	fs.Visit(func(f *pflag.Flag) {
		if value, ok := values[f.Name]; ok {
			c.set[fields[f.Name]] = value()
		}
	})
	if c.set["healthzBindAddress"] == "" {
		delete(c.set, "healthzBindAddress") // kubelet takes that for no flag
	}
	return c, nil
}

// absolute is a path of a flag, which begins where the service runs.
func absolute(p string) string {
	if p == "" {
		return ""
	}
	return path.Join("/", p)
}

// fields are those of the configuration that flags set.
var fields = map[string]string{
	"cluster-dns": "clusterDNS", "eviction-hard": "evictionHard", "fail-cgroupv1": "failCgroupV1", "fail-swap-on": "failSwapOn",
	"healthz-bind-address": "healthzBindAddress", "healthz-port": "healthzPort", "pod-cidr": "podCIDR", "port": "port", "resolv-conf": "resolvConf",
}

func plainly[T any](p *T) func() any { return func() any { return *p } }

// number is a float64, as it is in what JSON says.
func number(p *int32) func() any { return func() any { return float64(*p) } }

func list(p *[]string) func() any {
	return func() any {
		out := make([]any, len(*p))
		for i, s := range *p {
			out[i] = s
		}
		return out
	}
}

// thresholds is a flag like memory.available<100Mi,nodefs.available<10%. Source:
// LangleSeparatedMapStringString in k8s.io/component-base.
type thresholds map[string]any

// String implements pflag.Value.
func (thresholds) String() string { return "" }

// Type implements pflag.Value.
func (thresholds) Type() string { return "mapStringString" }

// Set implements pflag.Value.
func (t thresholds) Set(text string) error {
	for one := range strings.SplitSeq(text, ",") {
		if one == "" {
			continue
		}
		signal, value, ok := strings.Cut(one, "<")
		if !ok {
			return fmt.Errorf("%q is no signal<value", one)
		}
		t[strings.TrimSpace(signal)] = strings.TrimSpace(value)
	}
	return nil
}

// defaultEvictionHard is what a configuration file without evictionHard means; without a file there
// are no thresholds. Sources: loadConfigFile in cmd/kubelet/app/server.go and
// pkg/kubelet/eviction/defaults_linux.go of Kubernetes.
var defaultEvictionHard = map[string]string{
	"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%", "imagefs.inodesFree": "5%",
}

// Merge is the configuration that kubelet comes to: the file, then those of the directory in
// the order of kubelet's walk, each a JSON merge patch, then the flags. Files are JSON or
// YAML; numbers are float64. file is nil where the flags name none. Source:
// NewKubeletCommand and mergeKubeletConfigurations in cmd/kubelet/app/server.go of Kubernetes.
func (c CommandLine) Merge(file []byte, dropIns ...[]byte) (map[string]any, error) {
	config := map[string]any{}
	if c.File != "" {
		var err error
		if config, err = c.parsedFile(file); err != nil {
			return nil, err
		}
	}
	merged, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	for _, d := range dropIns {
		patch, err := yaml.YAMLToJSON(d)
		if err == nil {
			merged, err = jsonpatch.MergePatch(merged, patch)
		}
		if err != nil {
			return nil, fmt.Errorf("read a drop-in of kubelet's configuration: %w", err)
		}
	}
	config = map[string]any{}
	if err := json.Unmarshal(merged, &config); err != nil {
		return nil, fmt.Errorf("read kubelet's configuration: %w", err)
	}
	maps.Copy(config, c.set)
	return config, nil
}

// parsedFile has the thresholds and the paths as kubelet completes them.
func (c CommandLine) parsedFile(text []byte) (map[string]any, error) {
	config := map[string]any{}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("read kubelet's configuration: %w", err)
	}
	if len(config) == 0 {
		return nil, errors.New("kubelet's configuration is empty")
	}
	hard, said := config["evictionHard"].(map[string]any)
	if !said {
		hard = map[string]any{}
	}
	if completes, _ := config["mergeDefaultEvictionSettings"].(bool); !said || completes {
		for signal, value := range defaultEvictionHard {
			if _, ok := hard[signal]; !ok {
				hard[signal] = value
			}
		}
	}
	config["evictionHard"] = hard
	if list, _ := config["resolvConf"].(string); list != "" && !path.IsAbs(list) {
		config["resolvConf"] = path.Join(path.Dir(c.File), list)
	}
	return config, nil
}
