package node

import (
	"bytes"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
)

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(v1alpha1.Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", text); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	b, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// The schema takes what berth takes, and refuses what can be seen of bad documents
// without knowing more than one field.
func TestSchema(t *testing.T) {
	s := schema(t)
	for _, name := range documents {
		if err := validate(t, s, testdata(t, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range badInputs {
		if err := validate(t, s, edited(t, c.edits)); (err == nil) != c.beyond {
			t.Errorf("%s: %v", name, err)
		}
	}
}
