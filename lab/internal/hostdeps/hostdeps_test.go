package hostdeps

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// essential are programs that every Debian has, and the one that runs this.
var essential = []string{"apt-get", "bash", "cp", "nice", "sh", "sleep", "tar", "go"}

// TestEveryProgramIsInstalled: whatever a source file of the repository calls
// by its name is in a package that a set-up step installs, and what a test
// without machines calls in one that comes before such tests.
func TestEveryProgramIsInstalled(t *testing.T) {
	calls := programs(t, "../../..")
	if len(calls) < 10 {
		t.Errorf("only %d programs found: %v", len(calls), calls)
	}
	for name, files := range calls {
		for _, file := range files {
			from := all()
			if strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "/e2e/") && !needsMachine(file) {
				from = tests
			}
			if !slices.Contains(essential, name) && !provides(from, name) {
				t.Errorf("%s calls %s, which no set-up step installs before it", file, name)
			}
		}
	}
}

// needsMachine says that a test is behind the build tag vm.
func needsMachine(file string) bool { return strings.HasSuffix(file, "internal/vm/machine_test.go") }

func provides(tools []tool, name string) bool {
	return slices.ContainsFunc(tools, func(t tool) bool { return filepath.Base(t.path) == name })
}

// programs finds the names of programs in calls of os/exec and of the lab's
// Command below root, with the files that call them.
func programs(t *testing.T, root string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				for _, name := range called(call) {
					found[name] = append(found[name], path)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// called are the names of the programs that a call starts, or that a test's needs asks
// for before its scripts start them. A name that is no literal is none.
func called(call *ast.CallExpr) []string {
	args := call.Args
	switch callee := call.Fun.(type) {
	case *ast.Ident:
		if callee.Name != "needs" || len(args) == 0 {
			return nil
		}
		args = args[1:]
	case *ast.SelectorExpr:
		at, ok := map[string]int{"Command": 0, "LookPath": 0, "CommandContext": 1}[callee.Sel.Name]
		if x, isName := callee.X.(*ast.Ident); !ok || !isName || x.Name != "exec" || len(args) <= at {
			return nil
		}
		args = args[at : at+1]
	default:
		return nil
	}
	var names []string
	for _, arg := range args {
		if name := program(arg); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// program is the name in a literal; "" where there is none.
func program(arg ast.Expr) string {
	literal, ok := arg.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	path, err := strconv.Unquote(literal.Value)
	if err != nil || strings.HasPrefix(path, "/proc/") {
		return ""
	}
	return filepath.Base(path)
}
