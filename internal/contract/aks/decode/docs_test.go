package decode

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/contracts/aks.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func blocks(text, language string) []string {
	var out []string
	for _, after := range strings.Split(text, "```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(after, "```")
		out = append(out, block)
	}
	return out
}

// The page shows what the program says.
func TestPageShowsRealErrors(t *testing.T) {
	text := page(t)
	document, errors := blocks(text, "json")[0], blocks(text, "text")
	for i, data := range []string{document, document[:120]} {
		_, err := Decode([]byte(data))
		if err == nil {
			t.Fatal("accepted")
		}
		if diff := cmp.Diff(errors[i], err.Error()+"\n"); diff != "" {
			t.Error(diff)
		}
	}
}

func TestPageNamesRequiredFields(t *testing.T) {
	text := page(t)
	for _, path := range slices.Concat(always, toJoin, []string{"version", tokenPath, keyPath, certPath}) {
		if !strings.Contains(text, "`"+path+"`") {
			t.Errorf("%s is not on the page", path)
		}
	}
}
