package aks

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

// TestKubeletNames holds every name to those that kubelet reads: it refuses a
// file with another. The list is of k8s.io/kubelet v0.36.3, config/v1beta1.
func TestKubeletNames(t *testing.T) {
	list, err := os.ReadFile("testdata/kubeletconfiguration.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for name := range strings.Lines(string(list)) {
		known[strings.TrimSpace(name)] = true
	}
	config := sample(t, "full.json").GetKubeletConfig().GetKubeletConfigFileConfig()
	names := jsonPaths(jsonObject(config.ProtoReflect()), "")
	for _, name := range names {
		if !known[name] {
			t.Errorf("kubelet knows no field %s", name)
		}
	}
	if want := len(leaves(config.ProtoReflect(), "")); len(names) != want {
		t.Errorf("%d fields became %d", want, len(names))
	}
}

// jsonPaths are the leaves; a map that is no message is one.
func jsonPaths(o map[string]any, at string) []string {
	var out []string
	for k, v := range o {
		if nested, ok := v.(map[string]any); ok && isMessage(at+k) {
			out = append(out, jsonPaths(nested, at+k+".")...)
			continue
		}
		out = append(out, at+k)
	}
	return out
}

func isMessage(path string) bool {
	return strings.HasPrefix(path, "authentication") || strings.HasPrefix(path, "authorization")
}

func TestKubeletConfiguration(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"nothing":              {`{}`, `{}`},
		"false without saying": {`{"authentication":{"anonymous":{"enabled":false}},"read_only_port":0}`, `{"authentication":{"anonymous":{}}}`},
		"zero and said":        {`{"event_record_qps":0,"fail_swap_on":false,"cpu_cfs_quota":false}`, `{"cpuCFSQuota":false,"eventRecordQPS":0,"failSwapOn":false}`},
		"durations":            {`{"authentication":{"webhook":{"cache_ttl":"2m"}},"authorization":{"webhook":{"cache_authorized_ttl":"5m","cache_unauthorized_ttl":"30s"}}}`, `{"authentication":{"webhook":{"cacheTTL":"2m"}},"authorization":{"webhook":{"cacheAuthorizedTTL":"5m","cacheUnauthorizedTTL":"30s"}}}`},
		"maps and lists":       {`{"feature_gates":{"B":false,"A":true},"cluster_dns":["10.0.0.10"],"eviction_hard":{"pid.available":"1"}}`, `{"clusterDNS":["10.0.0.10"],"evictionHard":{"pid.available":"1"},"featureGates":{"A":true,"B":false}}`},
	} {
		config := &aksnodeconfigv1.KubeletConfigFileConfig{}
		if err := protojson.Unmarshal([]byte(c.in), config); err != nil {
			t.Fatal(err)
		}
		got, err := kubeletConfiguration(config)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, string(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// What protojson writes and what is written here differ in names only.
func TestKubeletConfigurationAgreesWithProtojson(t *testing.T) {
	config := proto.CloneOf(sample(t, "full.json").GetKubeletConfig().GetKubeletConfigFileConfig())
	config.Authentication.Webhook.CacheTtl, config.Authorization.Webhook = "", nil
	want, err := protojson.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	got, err := kubeletConfiguration(config)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if err := json.Unmarshal(want, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
}
