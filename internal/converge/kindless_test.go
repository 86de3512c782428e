package converge_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// parsed are the files of a package, without its tests.
func parsed(t *testing.T, dir string) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	out := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if out[filepath.Base(name)], err = parser.ParseFile(token.NewFileSet(), name, src, 0); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// resourceTypes are the types of resources that the model has, by the kinds' names.
func resourceTypes(t *testing.T) (types, kinds map[string]bool) {
	t.Helper()
	types, kinds = map[string]bool{}, map[string]bool{}
	for _, f := range parsed(t, "../desired") {
		for _, d := range f.Decls {
			m, ok := d.(*ast.FuncDecl)
			if !ok || m.Recv == nil || m.Name.Name != "Kind" {
				continue
			}
			types[m.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name] = true
			name, err := strconv.Unquote(m.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			kinds[name] = true
		}
	}
	return types, kinds
}

// The engine asks for no kind: what one of them can do besides is an interface of
// package kind, and the registry alone names them.
func TestEngineNamesNoKind(t *testing.T) {
	types, kinds := resourceTypes(t)
	if !types["Unit"] || !kinds["unit"] || len(types) < 18 {
		t.Fatalf("the model's resources were not found: %v, %v", types, kinds)
	}
	for file, f := range parsed(t, ".") {
		if file == "registry.go" {
			continue
		}
		for _, i := range f.Imports {
			if strings.Contains(i.Path.Value, "/converge/kind/") {
				t.Errorf("%s imports %s", file, i.Path.Value)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "desired" && types[n.Sel.Name] {
					t.Errorf("%s speaks of desired.%s", file, n.Sel.Name)
				}
			case *ast.BasicLit:
				if s, err := strconv.Unquote(n.Value); err == nil && kinds[strings.TrimSuffix(s, ":")] {
					t.Errorf("%s speaks of %s", file, n.Value)
				}
			}
			return true
		})
	}
}
