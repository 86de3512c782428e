package decode

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/golden"
)

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(pagePath)
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

const pagePath = "../../../../docs/contracts/aks.md"

// The tables of the page are made of the rules themselves: each names its reader.
func TestGeneratedTables(t *testing.T) {
	refused, readAs := []string{"| what | must be | refused otherwise by | where that rule stands |", "|---|---|---|---|"}, []string{"| what | is read |", "|---|---|"}
	for _, table := range [][]rule{nodeRules, kubeletRules} {
		for _, r := range table {
			refused, readAs = append(refused, refusedRow(t, fieldNames(r.fields), r.must, r.reader)...), append(readAs, readRow(fieldNames(r.fields), r.readAs)...)
		}
	}
	for _, flag := range slices.Sorted(maps.Keys(flagRules)) {
		r := flagRules[flag]
		refused, readAs = append(refused, refusedRow(t, "`"+flag+"`", r.must, r.reader)...), append(readAs, readRow("`"+flag+"`", r.readAs)...)
	}
	refused = append(refused, refusedRow(t, "all flags", "values without control characters and line breaks", systemdVariables)...)
	golden.Region(t, pagePath, "refused", strings.Join(refused, "\n")+"\n")
	golden.Region(t, pagePath, "normalised", strings.Join(readAs, "\n")+"\n")
}

// refusedRow is empty for a rule that refuses nothing; one that does has a reader.
func refusedRow(t *testing.T, what, must string, by *reader) []string {
	t.Helper()
	if (must == "") != (by == nil) {
		t.Errorf("%s: %q, reader %v", what, must, by)
	}
	if must == "" {
		return nil
	}
	return []string{"| " + what + " | " + must + " | " + by.name + " | " + by.source + " |"}
}

func readRow(what, as string) []string {
	if as == "" {
		return nil
	}
	return []string{"| " + what + " | " + as + " |"}
}

// fieldNames are those of the contract, of several at once sorted as the rule has them.
func fieldNames(fields string) string {
	var out []string
	for name := range strings.FieldsSeq(fields) {
		_, field, _ := strings.Cut(name, ".")
		out = append(out, "`"+field+"`")
	}
	return strings.Join(out, ", ")
}

// A rule that can refuse says so on the page, and none is there that can't.
func TestRulesThatRefuseAreOnThePage(t *testing.T) {
	for name, r := range byField() {
		if refuses := r.value != nil || r.key != nil || r.entry != nil; refuses != (r.must != "") {
			t.Errorf("%s: refuses %v, says %q", name, refuses, r.must)
		}
		if reads := r.read != nil || r.readKey != nil || r.readEntry != nil || r.number != nil; reads != (r.readAs != "") {
			t.Errorf("%s: reads %v, says %q", name, reads, r.readAs)
		}
	}
	for name, r := range flagRules {
		if (r.read != nil) != (r.readAs != "") || r.check != nil && r.must == "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
