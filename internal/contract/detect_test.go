package contract

import (
	"errors"
	"strings"
	"testing"
)

func TestDetect(t *testing.T) {
	cases := map[string]struct {
		document string
		want     Kind
	}{
		"aks":             {`{"version":"v1"}`, AKS},
		"aks truncated":   {`{"version":"v1"`, AKS},
		"nothing":         {``, AKS},
		"a list":          {`[]`, AKS},
		"aks yaml":        {"version: v1\n", AKS},
		"no text at all":  {"\x00\x01", AKS},
		"osc":             {"apiVersion: extensions.gardener.cloud/v1alpha1\nkind: OperatingSystemConfig\n", OperatingSystemConfig},
		"node config":     {`{"apiVersion":"berth.dev/v1alpha1","kind":"NodeConfig"}`, NodeConfig},
		"pod":             {`{"apiVersion":"v1","kind":"Pod"}`, ""},
		"kind of no type": {`{"kind":7}`, AKS},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Detect([]byte(c.document))
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			var unknown *UnknownKindError
			if (c.want == "") != errors.As(err, &unknown) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestDetectTellsBrokenYAML: a document that says its kind was never meant to be the JSON of AKS.
func TestDetectTellsBrokenYAML(t *testing.T) {
	for name, text := range map[string]string{
		"a bracket": "---\napiVersion: berth.dev/v1alpha1\nkind: NodeConfig\ncluster: [\n",
		"a tab":     "kind: NodeConfig # mine\r\napiVersion: berth.dev/v1alpha1\r\ncluster:\r\n\tserver: x\r\n",
		"a zero":    "kind: NodeConfig\x00\n",
	} {
		_, err := Decode([]byte(text))
		var unreadable *UnreadableError
		if !errors.As(err, &unreadable) || !strings.HasPrefix(err.Error(), "the document can't be read: yaml: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMetaOfLines: what is found line by line is what all of the text says; what may mean
// anything else is left to the reader of YAML.
func TestMetaOfLines(t *testing.T) {
	for text, found := range map[string]bool{
		"apiVersion: berth.dev/v1alpha1\nkind: NodeConfig\nspec: {":                                true,
		"# who\nkind: NodeConfig\nfiles:\n  kind: other\n\napiVersion: berth.dev/v1alpha1\nx: 1\n": true,
		"kind: NodeConfig\napiVersion: berth.dev/v1alpha1":                                         false,
		"apiVersion: berth.dev/v1alpha1\nkind: NodeConfig\n  more\n":                               false,
		"apiVersion: berth.dev/v1alpha1\nkind: \"NodeConfig\"\nx: 1\n":                             false,
		"apiVersion: v1\nkind: Pod\nx: 1\n":                                                        false,
		"---\napiVersion: berth.dev/v1alpha1\nkind: NodeConfig\nx: 1\n":                            false,
		"": false,
	} {
		m, ok := metaOfLines([]byte(text))
		if ok != found || ok && (m != meta{"berth.dev/v1alpha1", "NodeConfig"}) {
			t.Errorf("%q: %v %v", text, ok, m)
		}
	}
}

func FuzzDetect(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"v1"}`))
	f.Add([]byte("kind: x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if k, err := Detect(b); (k == "") != (err != nil) {
			t.Errorf("kind %q with error %v", k, err)
		}
	})
}
