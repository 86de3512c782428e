package unitfile

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"":                           nil,
		" a \t b\nc ":                {"a", "b", "c"},
		`--x="a b" 'c "d"'e`:         {"--x=a b", `c "d"e`},
		`"" a\ b c\\d \x41`:          {"", `a\ b`, `c\d`, `\x41`},
		`"a\"b" 'c\'d' a\sb "open x`: {`a"b`, "c'd", "a b", "open x"},
	} {
		if d := cmp.Diff(want, Split(text)); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
}

func TestVariables(t *testing.T) {
	got := Variables(`# NO=1
; NO=2
A=a b  # is no comment 
 B = "b \"c\" \d \$e"
C='c \d'
no sign
D=a\
b\ 
E="over
lines"
F=--x<1%,y="2"
G=`)
	want := map[string]string{"A": "a b  # is no comment", "B": `b "c" \d $e`, "C": `c \d`, "D": "ab ", "E": "over\nlines", "F": `--x<1%,y="2"`, "G": ""}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestCommand: drop-ins come after the definition, an empty value begins anew, and a file
// outdoes a line.
func TestCommand(t *testing.T) {
	files := map[string]string{"/etc/default/x": "FLAGS=--c --d=1%\nONE=file\n"}
	read := func(p string) ([]byte, error) { return []byte(files[p]), nil }
	unit := "[Unit]\nExecStart=no\n[Service]\nEnvironment=\"ONE=a b\" TWO=2%%\nEnvironmentFile=-/etc/default/x\nExecStart=-/bin/x --a \\\n  --b $FLAGS --one=${ONE} $NONE ${TWO} $$x ${NONE} 100%%\n"
	got, err := Command([]string{unit}, read)
	if d := cmp.Diff([]string{"/bin/x", "--a", "--b", "--c", "--d=1%", "--one=file", "2%", "$x", "", "100%"}, got); d != "" || err != nil {
		t.Error(err, d)
	}
	got, err = Command([]string{unit, "[Service]\nEnvironmentFile=\nExecStart=\nExecStart=@/bin/y y ${ONE} $TWO\n"}, read)
	if d := cmp.Diff([]string{"/bin/y", "a b", "2%"}, got); d != "" || err != nil {
		t.Error(err, d)
	}
	got, err = Command([]string{"[Service]\nExecStart=:/bin/z $A ${B}\n"}, read)
	if d := cmp.Diff([]string{"/bin/z", "$A", "${B}"}, got); d != "" || err != nil {
		t.Error(err, d)
	}
	if got, err = Command(nil, read); got != nil || err != nil {
		t.Error(got, err)
	}
	no := errors.New("no")
	if _, err = Command([]string{unit}, func(string) ([]byte, error) { return nil, no }); !errors.Is(err, no) {
		t.Error(err)
	}
}

// FuzzReadBack: what this package writes is read back as it was.
func FuzzReadBack(f *testing.F) {
	f.Add("--a=b c", `d"\$e`)
	f.Add("", "x\ny")
	f.Fuzz(func(t *testing.T, one, two string) {
		Split(one)
		Variables(one)
		if strings.ContainsAny(one+two, "\x00") {
			return
		}
		words := []string{one, two}
		if got := Split(Words(words)); !slices.Equal(got, words) {
			t.Errorf("%q of %q", got, words)
		}
		if got := Variables(Variable("A", one) + Variable("B", two)); got["A"] != one || got["B"] != two {
			t.Errorf("%q of %q, %q", got, one, two)
		}
	})
}
