package azure

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component"
)

var update = flag.Bool("update", false, "write the page anew")

// The page tells of the table and of nothing else.
func TestPermissionsPage(t *testing.T) {
	const file = "../../docs/azure-permissions.md"
	text, err := template.New("permissions.md").Funcs(template.FuncMap{"rows": rows}).ParseFiles("testdata/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := text.Execute(&b, nil); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), b.String()); diff != "" {
		t.Errorf("%s is stale (-file +now):\n%s", file, diff)
	}
}

// rows are those of the operator, or of the machine.
func rows(operator bool) string {
	var out []string
	for _, p := range Permissions() {
		if p.Operator == operator {
			out = append(out, fmt.Sprintf("| %s | %s | %s | `%s` | %s |", p.Role, p.Scope, p.Reason, strings.Join(p.Actions, "`, `"), p.Needed))
		}
	}
	return strings.Join(out, "\n")
}

func TestPermissionApplies(t *testing.T) {
	r := &component.ArcRegistration{SubscriptionID: "s", ResourceGroup: "g"}
	for cluster, want := range map[string]string{"": "/subscriptions/s/resourceGroups/g /subscriptions/s/resourceGroups/g", aks: "/subscriptions/s/resourceGroups/g /subscriptions/s/resourceGroups/g " + aks} {
		r.ClusterID = cluster
		var scopes []string
		for _, p := range Permissions() {
			if p.Applies(r) {
				scopes = append(scopes, p.At(r))
			}
			if p.Applies(nil) {
				t.Errorf("%s for nobody", p.Role)
			}
		}
		if got := strings.Join(scopes, " "); got != want {
			t.Errorf("%q", got)
		}
	}
}

func TestMissing(t *testing.T) {
	p := Permission{Actions: []string{"Microsoft.HybridCompute/machines/read", "Microsoft.HybridCompute/machines/write"}}
	for name, tc := range map[string]struct {
		grants []Grant
		want   int
	}{
		"nothing":              {nil, 2},
		"all":                  {[]Grant{{Actions: []string{"*"}}}, 0},
		"readers":              {[]Grant{{Actions: []string{"*/read"}}}, 1},
		"two roles":            {[]Grant{{Actions: []string{"*/read"}}, {Actions: []string{"microsoft.hybridcompute/*/WRITE"}}}, 0},
		"all but that":         {[]Grant{{Actions: []string{"*"}, NotActions: []string{"Microsoft.HybridCompute/*"}}}, 2},
		"by another role":      {[]Grant{{Actions: []string{"*"}, NotActions: []string{"Microsoft.HybridCompute/*"}}, {Actions: []string{"Microsoft.HybridCompute/machines/*"}}}, 0},
		"of another provider":  {[]Grant{{Actions: []string{"Microsoft.Compute/*"}}}, 2},
		"of what is below":     {[]Grant{{Actions: []string{"Microsoft.HybridCompute/machines/extensions/*"}}}, 2},
		"the name, not a part": {[]Grant{{Actions: []string{"Microsoft.HybridCompute/machines/rea", "Microsoft.HybridCompute/machines/readers"}}}, 2},
	} {
		if got := p.Missing(tc.grants); len(got) != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestGranted(t *testing.T) {
	m, a := resourceManager(t, map[string][]http.HandlerFunc{"GET": {
		say(200, `{"value":[{"actions":["*/read"],"notActions":["a"]}]}`), say(200, `{"value":[]}`), refuse(403, "AuthorizationFailed"),
		say(200, `{}`), say(200, `[]`), say(200, `{"value":[],"nextLink":"https://x"}`)}})
	for i, want := range []int{1, 0, -1, -1, -1, -1} {
		got, err := m.Granted(context.Background(), aks+"/")
		if (err != nil) != (want < 0) || want >= 0 && len(got) != want {
			t.Errorf("%d: %+v, %v", i, got, err)
		}
	}
	if a.log[0] != "GET "+aks+"/providers/Microsoft.Authorization/permissions" {
		t.Error(a.log[0])
	}
}

// A pattern allows what it says and nothing that it does not hold.
func FuzzMatches(f *testing.F) {
	f.Add("*/read", "a/b/read")
	f.Add("a*b*c", "abc")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		got := matches(pattern, text)
		if strings.Count(pattern, "*") == 0 && got != (pattern == text) {
			t.Errorf("%q, %q: %v", pattern, text, got)
		}
		if !strings.Contains(text, "*") && !matches(strings.ReplaceAll(pattern, "*", text), strings.ReplaceAll(pattern, "*", text)) {
			t.Errorf("%q is not its own", pattern)
		}
		if !matches("*"+text, text) || !matches(text+"*", text) || !matches("*", text) {
			t.Errorf("%q is not of its own pattern", text)
		}
		for _, part := range strings.Split(pattern, "*") {
			if got && !strings.Contains(text, part) {
				t.Errorf("%q is taken for %q", text, pattern)
			}
		}
	})
}

func FuzzGrants(f *testing.F) {
	f.Add([]byte(`{"value":[{"actions":["*"],"notActions":null}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		all, err := grantsOf(body)
		if (err == nil) != (all != nil) {
			t.Errorf("%+v, %v", all, err)
		}
	})
}
