package decode

import (
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/api/resource"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

func FuzzDecodeAgreesWithProtojson(f *testing.F) {
	f.Add(sample(f, "minimal"))
	f.Add(sample(f, "full"))
	for _, text := range []string{
		``, `{`, `[]`, `null`, `{"version":null,"version":"v1"}`, `{"cseTimeout":"1e2","cse_timeout":3}`,
		`{"customCaCerts":["a",null]}`, `{"cse_timeout":1.0,"workload_runtime":7}`, `{"workload_runtime":"X"}`,
		`{"kubelet_config":{"kubelet_node_labels":{"a":"b","a":"c"}}}`, `{"version":"\ud83d\ude00"}`, `{"version":"\ud83d"}`,
		`{"local_dns_profile":{"vnet_dns_overrides":{".":{"max_concurrent":"7"},"":{}}}}`, `{"x":{"version":[{}]}}`,
		`{"cluster_config":{"cloud_provider_config":{"backoff_jitter":"Infinity","rate_limit_qps":-0,"backoff_exponent":"1.5"}}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = Decode(data) // never panics
		doc, refused := Read(data)
		want := &aksnodeconfigv1.Configuration{}
		err := protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, want)
		dropUnknown(want.ProtoReflect())
		switch {
		case refused == nil && err == nil && !proto.Equal(doc.Config, want):
			t.Errorf("got  %v\nwant %v", doc.Config, want)
		case refused != nil && err == nil && !stricter(data):
			t.Errorf("protojson reads %v, but: %v", want, refused)
		}
	})
}

// dropUnknown clears enum numbers of a newer contract, which protojson keeps.
func dropUnknown(m protoreflect.Message) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Enum() != nil && fd.Enum().Values().ByNumber(v.Enum()) == nil:
			m.Clear(fd)
		case fd.Message() != nil && !fd.IsMap():
			dropUnknown(v.Message())
		}
		return true
	})
}

// stricter: where this package is narrower than protojson on purpose: a network plugin must be known,
// and null counts as setting a field.
func stricter(data []byte) bool {
	text := strings.ToLower(string(data))
	return strings.Contains(text, "null") || strings.Contains(text, "network") || strings.Contains(text, `\u`)
}

// What this package calls a quantity, Kubernetes reads as one, and the other way round; both see the same sign.
func FuzzQuantity(f *testing.F) {
	for _, s := range []string{"100m", "1Gi", "1.5", ".5", "+1", "-1", "1e3", "1E", "", "Mi", "0", "5.", "1e", "9n", "1k", "1K"} {
		f.Add(s)
	}
	exponent := regexp.MustCompile(`^[+-]?\.?[eE]|[eE][+-]?[0-9]{4}`) // without a number, or so long that it takes the machine's memory
	f.Fuzz(func(t *testing.T, s string) {
		if exponent.MatchString(s) && len(s) > 1 {
			return
		}
		q, err := resource.ParseQuantity(s)
		sign, accepted := signOf(s)
		if accepted != (err == nil) || accepted && sign != q.Sign() || accepted != (quantity(s) == "") {
			t.Errorf("%q: accepted %v, sign %d, Kubernetes: %v, %v", s, accepted, sign, q.String(), err)
		}
	})
}
