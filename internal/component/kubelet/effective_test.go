package kubelet

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// merged is the configuration of a command line, a file and those of others.
func merged(t *testing.T, flags []string, file string, dropIns ...string) map[string]any {
	t.Helper()
	c, err := ReadCommandLine(flags)
	if err != nil {
		t.Fatal(err)
	}
	var patches [][]byte
	for _, d := range dropIns {
		patches = append(patches, []byte(d))
	}
	out, err := c.Merge([]byte(file), patches...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestMergeFlags(t *testing.T) {
	got := merged(t, []string{
		"--enable-server", "--v", "2", "--oom_score_adj", "-5", "--node-labels=a=b,c=d", "--hostname-override", "x", "--config", "k/config", "--fail_swap_on=false", "--fail-cgroupv1",
		"--port=1", "--healthz-port", "2", "--healthz-bind-address=::1", "--cluster-dns=192.0.2.1,192.0.2.2", "--cluster-dns=192.0.2.3", "--pod-cidr=192.0.2.0/24",
		"--resolv-conf=/x", "--eviction-hard=a<1%, b < 2", "--eviction-hard=c<3", "--unknown",
	}, `{"kind": "KubeletConfiguration", "port": 9, "failSwapOn": true, "resolvConf": "y", "evictionHard": {"z": "9"}, "other": {"x": null}}`)
	want := map[string]any{
		"kind": "KubeletConfiguration", "port": 1.0, "healthzPort": 2.0, "healthzBindAddress": "::1", "failSwapOn": false, "failCgroupV1": true, "podCIDR": "192.0.2.0/24",
		"clusterDNS": []any{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, "resolvConf": "/x", "evictionHard": map[string]any{"a": "1%", "b": "2", "c": "3"}, "other": map[string]any{"x": nil},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestMergeThresholds(t *testing.T) {
	defaults := map[string]any{"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%", "imagefs.inodesFree": "5%"}
	but := map[string]any{"memory.available": "1Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%", "imagefs.inodesFree": "5%"}
	one := map[string]any{"memory.available": "1Mi"}
	const own = `"evictionHard": {"memory.available": "1Mi"}`
	for name, c := range map[string]struct {
		flags   []string
		file    string
		dropIns []string
		want    any
	}{
		"nothing":                 {nil, "", nil, nil},
		"a file without":          {[]string{"--config=/c"}, `{"kind": "x"}`, nil, defaults},
		"null":                    {[]string{"--config=/c"}, `{"evictionHard": null}`, nil, defaults},
		"an empty map":            {[]string{"--config=/c"}, `{"evictionHard": {}}`, nil, map[string]any{}},
		"a map":                   {[]string{"--config=/c"}, `{` + own + `}`, nil, one},
		"YAML":                    {[]string{"--config=/c"}, "evictionHard:\n  memory.available: 1Mi\n", nil, one},
		"with the defaults":       {[]string{"--config=/c"}, `{"mergeDefaultEvictionSettings": true, ` + own + `}`, nil, but},
		"a drop-in":               {[]string{"--config=/c"}, `{"kind": "x"}`, []string{`{` + own + `}`}, but},
		"a drop-in alone":         {[]string{"--config-dir=/d"}, "", []string{`{` + own + `}`}, one},
		"a drop-in with null":     {[]string{"--config=/c"}, `{"kind": "x"}`, []string{`{"evictionHard": null}`}, nil},
		"the last drop-in counts": {[]string{"--config=/c"}, `{"evictionHard": {}}`, []string{`{"evictionHard": {"memory.available": "7Mi"}}`, `{` + own + `}`}, one},
		"a drop-in is no file":    {[]string{"--config=/c"}, `{` + own + `}`, []string{`{"mergeDefaultEvictionSettings": true}`}, one},
		"a flag":                  {[]string{"--config=/c", "--eviction-hard=memory.available<1Mi"}, `{"mergeDefaultEvictionSettings": true}`, []string{`{"evictionHard": {"x": "7"}}`}, one},
		"an empty flag":           {[]string{"--config=/c", "--eviction-hard="}, `{"kind": "x"}`, nil, map[string]any{}},
		"a flag alone":            {[]string{"--eviction-hard=memory.available<1Mi"}, "", nil, one},
	} {
		if d := cmp.Diff(c.want, merged(t, c.flags, c.file, c.dropIns...)["evictionHard"]); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestMergePaths(t *testing.T) {
	if got := merged(t, []string{"--config=k/c"}, `{"resolvConf": "list"}`)["resolvConf"]; got != "/k/list" {
		t.Error(got)
	}
	if got := merged(t, []string{"--config=/k/c", "--healthz-bind-address="}, `{"healthzBindAddress": "::1"}`)["healthzBindAddress"]; got != "::1" {
		t.Error(got)
	}
}

// What kubelet refuses to start with says nothing.
func TestMergeRefuses(t *testing.T) {
	for _, flags := range [][]string{{"--port=x"}, {"--eviction-hard=a"}, {"--fail-swap-on=maybe"}} {
		if _, err := ReadCommandLine(flags); err == nil {
			t.Errorf("%q is read", flags)
		}
	}
	c := CommandLine{File: "/c"}
	for _, texts := range [][]string{{""}, {"{"}, {`{"kind": "x"}`, "{"}, {`{"kind": "x"}`, "[]"}, {`{"kind": "x"}`, "x"}} {
		var dropIns [][]byte
		for _, d := range texts[1:] {
			dropIns = append(dropIns, []byte(d))
		}
		if got, err := c.Merge([]byte(texts[0]), dropIns...); err == nil {
			t.Errorf("%q: %v", texts, got)
		}
	}
}

// FuzzReadCommandLine: whatever the flags are, what comes of them can be written as JSON, and
// each field is of the type that its readers expect.
func FuzzReadCommandLine(f *testing.F) {
	for _, text := range []string{"--config=/c --port=1", "--eviction-hard=a<1%,b<2", "--eviction-hard a", "-v 2 --x -- --port=2", "--cluster-dns=a,\"b", "-h", "--=", "---"} {
		f.Add(text, `{"kind": "x"}`, "evictionHard: {a: 1%}")
	}
	f.Fuzz(func(t *testing.T, flags, file, dropIn string) {
		c, err := ReadCommandLine(strings.Fields(flags))
		if err != nil {
			return
		}
		config, err := c.Merge([]byte(file), []byte(dropIn))
		if err != nil {
			return
		}
		if _, err := json.Marshal(config); err != nil {
			t.Errorf("%q: %v", flags, err)
		}
		for name := range c.set {
			if d := cmp.Diff(c.set[name], config[name]); d != "" {
				t.Errorf("%q: %s", flags, d)
			}
		}
		if hard, said := c.set["evictionHard"]; said {
			for signal, value := range hard.(map[string]any) {
				if _, ok := value.(string); !ok {
					t.Errorf("%q: %s", flags, signal)
				}
			}
		}
	})
}
