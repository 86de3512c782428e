package config

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/internal/host/memory"
)

const defaultOptions = `drift:
  policy: repair
  stormGuard:
    pause: 10m0s
    repairs: 5
    within: 1m0s
foreignAgent: keepOut
group: gardener.cloud:node-agents
jitter: 5m0s
lease:
  duration: 2m40s
  renew: 40s
maxUnavailable: 1
requireDigests: false
sources:
  aksNodeConfig: ""
  nodeConfig: ""
  operatingSystemConfig: ""
  secret: true
trial: true
updateWithin: 2m0s
`

func TestOptionsHaveDefaults(t *testing.T) {
	o, err := ReadOptions(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	got, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(defaultOptions, string(got)); d != "" {
		t.Error(d)
	}
}

func TestOptionsAreStrict(t *testing.T) {
	for text, field := range map[string]string{
		"maxUnavailable: -1":                 "maxUnavailable",
		"drfit: {}":                          "",
		"drift: {policy: sometimes}":         "drift.policy",
		"jitter: -1s":                        "jitter",
		"lease: {renew: 1s}":                 "lease.renew",
		"lease: {duration: 60s}":             "lease.duration",
		"foreignAgent: maybe":                "foreignAgent",
		"updateWithin: 1s":                   "updateWithin",
		"trial: perhaps":                     "",
		"a: 1\na: 2":                         "",
		"drift: {stormGuard: {repairs: -1}}": "drift.stormGuard.repairs",
		"drift: {stormGuard: {within: 0s}}":  "drift.stormGuard.within",
		"drift: {stormGuard: {pause: 1ms}}":  "drift.stormGuard.pause",
		"drift: {paths: [{path: /etc/../x, policy: report}]}":                    "drift.paths[0].path",
		"drift: {paths: [{path: etc/x, policy: report}]}":                        "drift.paths[0].path",
		"drift: {paths: [{policy: report}]}":                                     "drift.paths[0].path",
		"drift: {paths: [{path: /etc/x}]}":                                       "drift.paths[0].policy",
		"sources: {aksNodeConfig: x.json}":                                       "sources.aksNodeConfig",
		"sources: {operatingSystemConfig: /x}":                                   "sources.operatingSystemConfig",
		"sources: {nodeConfig: x.yaml}":                                          "sources.nodeConfig",
		"sources: {nodeConfig: /x, aksNodeConfig: /x}":                           "sources.nodeConfig",
		"drift: {stormGuard: {repairs: many}}":                                   "drift.stormGuard.repairs",
		"sources: {secret: false}":                                               "sources",
		"sources: {secret: false, operatingSystemConfig: /x, aksNodeConfig: /x}": "sources.operatingSystemConfig",
	} {
		_, err := ParseOptions("agent.yaml", []byte(text))
		e, ok := errors.AsType[*Error](err)
		if !ok {
			t.Errorf("%s: taken: %v", text, err)
			continue
		}
		if got := e.List()[0].Field; field != "" && got != field {
			t.Errorf("%s: field %q, want %q", text, got, field)
		}
	}
}

func TestOptionsAreRead(t *testing.T) {
	h := memory.New()
	mkdir(t, h, "/etc/berth")
	write(t, h, OptionsPath, "drift: {policy: report, paths: [{path: kubelet.service, policy: repair}, {path: /etc/x, policy: ignore}]}\ntrial: false\njitter: 0s\n")
	o, err := ReadOptions(h)
	if err != nil {
		t.Fatal(err)
	}
	want := []PathPolicy{{"kubelet.service", Repair}, {"/etc/x", Ignore}}
	if d := cmp.Diff(want, o.Drift.Paths); d != "" || *o.Trial || o.Jitter.Duration != 0 || o.Drift.Policy != Report {
		t.Error(d, o)
	}
}

func FuzzOptions(f *testing.F) {
	f.Add([]byte(defaultOptions))
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, err := ParseOptions("o", b); (o == nil) == (err == nil) {
			t.Fatal(o, err)
		}
	})
}

// TestWhatIsNoConfiguration is told in words of the file, not of its reader.
func TestWhatIsNoConfiguration(t *testing.T) {
	for text, want := range map[string]string{
		"foo: bar":                   `f: unknown field "foo"`,
		"- a":                        "f: must be a map of fields",
		"jitter: 5":                  "f: jitter: Invalid value: is a number, must be a string",
		"drift: {paths: {path: /x}}": "f: drift.paths: Invalid value: is a map, must be a list",
		"trial: [":                   "f: yaml: line 1: did not find expected node content",
		"maxUnavailable: \"two\"":    "f: maxUnavailable: Invalid value: is a string, must be a number",
		"lease: {renew: soon}":       `f: time: invalid duration "soon"`,
		"sources: {secret: perhaps}": "f: sources.secret: Invalid value: is a string, must be a bool",
	} {
		if _, err := ParseOptions("f", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, _, err := Parse("f", []byte("server: 7")); err == nil || err.Error() != "f: server: Invalid value: is a number, must be a map" {
		t.Error(err)
	}
}
