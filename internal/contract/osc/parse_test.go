package osc

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// parsePublished reads as the published reader does, by way of JSON text.
func parsePublished(data []byte) (tree any, err error) {
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return tree, d.Decode(&tree)
}

// FuzzParse: what is read, and what is refused, is what the published reader reads.
func FuzzParse(f *testing.F) {
	full, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{
		string(full), "", "null", "a", "1", "---\na: 1\n---\nb: 2\n", "a: 1\na: 2\n", "{\"a\": 1, \"a\": 2}", "a: [1, 0x1f, 0b11, 017, 1.50, 1e30, -0.0, 1e-9]\n",
		"a: .inf\n", "a: .nan\n", "a: !!binary /////w==\n", "a: 2026-01-02\n", "a: yes\nb: ~\nc: \"\\u2028<&>\"\n",
		"1: a\ntrue: b\n1.5: c\n.inf: d\n-.inf: e\n.nan: f\n!!binary /////w==: g\n", "1e300: a\n", "~: a\n", "[a]: b\n", "{a: b}: c\n", "a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}\n",
		"a: &x [&y {b: 1}, 2]\nc: *x\nd: *y\n", "a: 18446744073709551615\nb: 99999999999999999999\n", "a: &x [*x]\n", "\xff: 1\n", "a: |\n  b\n  c\n", "{", "a:\n\t- b\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want, wantErr := parsePublished(data)
		got, err := parse(data)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("error %v, published %v", err, wantErr)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
