package pawl_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// calls reports whether the file calls receiver.method.
func calls(file *ast.File, receiver, method string) bool {
	found := false
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return !found
		}
		if selector, ok := call.Fun.(*ast.SelectorExpr); ok && selector.Sel.Name == method {
			ident, ok := selector.X.(*ast.Ident)
			found = found || ok && ident.Name == receiver
		}
		return !found
	})
	return found
}

func importsOf(file *ast.File) []string {
	var paths []string
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value) // the parser has accepted it
		paths = append(paths, imported)
	}
	return paths
}

// productFiles are the files that end up in the program: those of this module
// that are neither tests nor for tests. Benchmarks are modules of their own.
func productFiles(t *testing.T) map[string]*ast.File {
	files := goFiles(t)
	maps.DeleteFunc(files, func(name string, _ *ast.File) bool {
		entry, _ := layerOf(path.Dir(name))
		return strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "bench/") || slices.Contains(testOnly, entry)
	})
	return files
}

func testFiles(t *testing.T) map[string]*ast.File {
	files := goFiles(t)
	maps.DeleteFunc(files, func(name string, _ *ast.File) bool { return !strings.HasSuffix(name, "_test.go") })
	return files
}

// parsed keeps what goFiles read: a thousand files are parsed once, not once
// for every rule.
var parsed struct {
	sync.Mutex
	files map[string]*ast.File
}

// goFiles has every Go file of the repository, but for what the go command does
// not build either. The map is the caller's own, the trees are not.
func goFiles(t *testing.T) map[string]*ast.File {
	t.Helper()
	parsed.Lock()
	defer parsed.Unlock()
	if parsed.files == nil {
		files := map[string]*ast.File{}
		for _, name := range repositoryFiles(t) {
			if path.Ext(name) == ".go" && !strings.Contains("/"+name, "/testdata/") {
				files[name] = parse(t, name, read(t, name))
			}
		}
		parsed.files = files
	}
	return maps.Clone(parsed.files)
}

func parse(t *testing.T, name string, text []byte) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("parse %s: %v", name, err)
	}
	return file
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatalf("read a file of the repository: %v", err)
	}
	return text
}

// repositoryFiles lists what Git has or would add, sorted; in a source archive
// without Git, every file.
func repositoryFiles(t *testing.T) []string {
	t.Helper()
	var names []string
	listed, err := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err == nil {
		names = strings.Split(strings.Trim(string(listed), "\x00"), "\x00")
	} else {
		names = walk(t)
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		info, err := os.Lstat(filepath.FromSlash(name))
		return err != nil || !info.Mode().IsRegular() // removed but not committed, or a link
	})
	slices.Sort(names)
	return slices.Compact(names)
}

func walk(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == ".git" || name == "bin"):
			return filepath.SkipDir
		case !entry.IsDir():
			names = append(names, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatalf("walk the repository: %v", err)
	}
	return names
}

// migrations are the texts of the migrations, by file.
func migrations(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range repositoryFiles(t) {
		if path.Dir(name) == "internal/store/migrations" {
			out[path.Base(name)] = string(read(t, name))
		}
	}
	if len(out) < 5 {
		t.Fatalf("found %d migrations", len(out))
	}
	return out
}

// structFields are the fields of a struct with their types as they are written.
func structFields(t *testing.T, file, name string) map[string]string {
	t.Helper()
	fields := map[string]string{}
	ast.Inspect(parse(t, file, read(t, file)), func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				for _, ident := range f.Names {
					fields[ident.Name] = typeText(f.Type)
				}
			}
		}
		return false
	})
	return fields
}

// methodsOf are the names of the methods in a file.
func methodsOf(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
			names = append(names, f.Name.Name)
		}
	}
	return names
}

// typeText is a simple type or name as it is written.
func typeText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.BasicLit:
		return e.Value
	case *ast.SelectorExpr:
		return typeText(e.X) + "." + e.Sel.Name
	case *ast.StarExpr:
		return "*" + typeText(e.X)
	case *ast.MapType:
		return "map[" + typeText(e.Key) + "]" + typeText(e.Value)
	}
	return ""
}
