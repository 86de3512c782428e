package decode

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

func sample(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("../testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// edits are values by path: keys, split at dots; a key with dots stands after the last /. nil takes a value away.
type edits map[string]any

// document is the minimal sample with some values changed.
func (e edits) document(t testing.TB) []byte {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(sample(t, "minimal"), &doc); err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(e)) {
		front, last, found := strings.Cut(path, "/")
		keys := strings.Split(front, ".")
		if found {
			keys = append(keys, last)
		}
		set(doc, keys, e[path])
	}
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func set(at map[string]any, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		next, ok := at[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	at[path[len(path)-1]] = value
	if value == nil {
		delete(at, path[len(path)-1])
	}
}

// edited is the minimal sample with one value set (or removed, where value is nil) at a path of keys.
func edited(t testing.TB, path []string, value any) []byte {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(sample(t, "minimal"), &doc); err != nil {
		t.Fatal(err)
	}
	set(doc, path, value)
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSamplesAreAccepted(t *testing.T) {
	for _, name := range []string{"minimal", "full"} {
		t.Run(name, func(t *testing.T) {
			doc, err := Decode(sample(t, name))
			if err != nil {
				t.Fatal(err)
			}
			if len(doc.Notes) > 0 {
				t.Errorf("notes: %v", doc.Notes)
			}
			want := &aksnodeconfigv1.Configuration{}
			if err := protojson.Unmarshal(sample(t, name), want); err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(doc.Config, want) {
				t.Errorf("got %v\nwant %v", doc.Config, want)
			}
		})
	}
}

// The published reader also takes lowerCamel names; every field is read both ways.
func TestBothSpellingsMeanTheSame(t *testing.T) {
	snake, err := Decode(sample(t, "full"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := protojson.Marshal(snake.Config)
	if err != nil {
		t.Fatal(err)
	}
	camel, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(camel.Notes) > 0 || !proto.Equal(snake.Config, camel.Config) {
		t.Errorf("lowerCamel reads differently: notes %v", camel.Notes)
	}
}

// The full sample sets every field of the contract, except the one that would leave the node part out
// and one that another excludes.
func TestFullSampleIsFull(t *testing.T) {
	doc, err := Decode(sample(t, "full"))
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	unset(doc.Config.ProtoReflect(), &missing)
	if got := strings.Join(missing, " "); got != "GpuConfig.enable_managed_gpu_dra Configuration.pre_provision_only" {
		t.Errorf("not set: %s", got)
	}
}

func unset(m protoreflect.Message, missing *[]string) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		switch {
		case !m.Has(fd):
			*missing = append(*missing, string(m.Descriptor().Name()+"."+fd.Name()))
		case fd.IsMap() && fd.MapValue().Message() != nil:
			m.Get(fd).Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				unset(v.Message(), missing)
				return true
			})
		case fd.Message() != nil && !fd.IsMap():
			unset(m.Get(fd).Message(), missing)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	data := sample(b, "full")
	for b.Loop() {
		if _, err := Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}
