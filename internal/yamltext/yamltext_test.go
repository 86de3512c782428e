package yamltext

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// Every string comes back as it was, from where a library alone refuses it or folds it.
func FuzzFromJSON(f *testing.F) {
	for _, s := range []string{"", "a", "\x7f:", "a\u0080\u009fb", "a\u0085b", "a\u2028\u2029b", "\ufffe\uffff", "\ufeffa", "\U0001f600\"\\\n\t", "no", "1e3", " # a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return
		}
		var raw strings.Builder // json.Marshal escapes some of what JSON may have as it is
		for _, r := range s {
			if b, err := json.Marshal(string(r)); err != nil {
				t.Fatal(err)
			} else if r < ' ' || r == '"' || r == '\\' {
				raw.Write(b[1 : len(b)-1])
			} else {
				raw.WriteRune(r)
			}
		}
		text, err := FromJSON([]byte(`{"k": ["` + raw.String() + `"]}`))
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		var got struct{ K []string }
		if err := yaml.Unmarshal(text, &got); err != nil || len(got.K) != 1 || got.K[0] != s {
			t.Errorf("%q came back as %q (%v):\n%s", s, got.K, err, text)
		}
	})
}

func TestMarshal(t *testing.T) {
	got, err := Marshal(map[string]any{"b": "\u0085", "a": 1})
	if want := "a: 1\nb: \"\\N\"\n"; err != nil || string(got) != want {
		t.Errorf("%q, want %q (%v)", got, want, err)
	}
	if _, err := Marshal(func() {}); err == nil {
		t.Error("what is no JSON is written")
	}
}
