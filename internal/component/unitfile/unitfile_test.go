package unitfile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestText(t *testing.T) {
	got := Text(In("Unit", "Description", "a", "After", "b c"), In("Service", "Type", "notify"))
	want := header + "[Unit]\nDescription=a\nAfter=b c\n\n[Service]\nType=notify\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestQuoting(t *testing.T) {
	for name, c := range map[string]struct{ got, want string }{
		"environment":           {Environment("A", `b "c" \d 100%`), `"A=b \"c\" \\d 100%%"`},
		"variable":              {Variable("A", "b \"c\" $d \\e `f`"), `A="b \"c\" \$d \\e ` + "\\`f\\`" + "\"\n"},
		"plain word":            {Word("--eviction-hard=memory.available<750Mi,nodefs.available<10%"), "--eviction-hard=memory.available<750Mi,nodefs.available<10%"},
		"word with space":       {Word("--a=b c"), `"--a=b c"`},
		"word with quotes":      {Word(`--a={"b":'c'}`), `"--a={\"b\":'c'}"`},
		"empty word":            {Word(""), `""`},
		"words":                 {Words([]string{"--a", "b c"}), `--a "b c"`},
		"word that expands":     {Word("--a=$b"), `"--a=$b"`},
		"word with a backslash": {Word(`a\b`), `"a\\b"`},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %s, want %s", name, c.got, c.want)
		}
	}
}
