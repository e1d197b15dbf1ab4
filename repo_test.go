package pawl_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The rules of this repository that a compiler does not hold. Each failure
// says why the rule is there.

const modulePath = "github.com/pawlrun/pawl"

// layers are the packages from the top down. A package may import those of
// the layers below its own; a folder belongs to the longest entry above it.
var layers = [][]string{
	{"cmd/pawl", "e2e"},
	{"internal/cli"},
	{"internal/demo"},
	{"internal/server"},
	{"internal/api", "internal/web"},
	{"internal/workflow", "internal/source", "internal/schedule", "internal/task", "internal/notify", "internal/prune", "internal/hook", "internal/worker", "internal/expect"},
	{"internal/timing"},
	{"internal/calendar", "internal/moving", "internal/need"},
	{"internal/lane"},
	{"internal/execution"},
	{"internal/executor", "internal/billing"},
	{
		"internal/script", "internal/tool", "internal/repair", "internal/quota",
		"internal/access", "internal/grant", "internal/ledger", "internal/queue", "internal/outbound", "internal/relay",
	},
	{"internal/execution/contract", "internal/execution/work", "internal/terms", "internal/price"},
	{
		"internal/store/workflowstore", "internal/store/eventstore", "internal/store/mutationstore", "internal/store/sourcestore", "internal/store/quotastore",
		"internal/store/schedulestore", "internal/store/executionstore", "internal/store/grantstore", "internal/store/userstore", "internal/store/prunestore",
		"internal/store/calendarstore", "internal/store/hookstore", "internal/store/gaugestore", "internal/store/workerstore", "internal/store/needstore", "internal/store/partitionstore",
	},
	{"internal/store/runstore"},
	{"internal/store", "internal/definition", "internal/budget", "internal/run", "internal/when", "internal/retention", "examples"},
	{"internal/redact", "internal/linediff", "internal/mail", "internal/telemetry"},
	{"internal/visible"},
	{"client"}, // what users' programs import with it they inherit
	{"."},
}

// pure packages stand on the root package alone; their neighbours may import
// them.
var pure = []string{"internal/run", "internal/when", "internal/retention"}

// neighbours are the imports allowed within a layer, with the reason.
var neighbours = map[string]string{
	"internal/script -> internal/tool":     "the host API calls connectors",
	"internal/repair -> internal/script":   "a repaired script is compiled and checked before it is kept",
	"internal/tool -> internal/outbound":   "connectors reach the network through the guarded client",
	"internal/tool -> internal/quota":      "connectors book their calls",
	"internal/repair -> internal/outbound": "models are reached through the guarded client",
	"internal/quota -> internal/outbound":  "tokens of providers are fetched through the guarded client",
}

// rooms are the packages that reach the rows of each room of the store: the one
// that owns them, and the surfaces. Runs are in all lanes, so all may.
var rooms = map[string][]string{
	"internal/store/workflowstore":  {"internal/workflow", "internal/api", "internal/web"},
	"internal/store/partitionstore": {"internal/workflow", "internal/api"},
	"internal/store/eventstore":     {"internal/workflow", "internal/api", "internal/server", "internal/cli", "internal/prune"},
	"internal/store/mutationstore":  {"internal/workflow", "internal/api"},
	"internal/store/sourcestore":    {"internal/source", "internal/api", "internal/web"},
	"internal/store/quotastore":     {"internal/quota"},
	"internal/store/schedulestore":  {"internal/schedule", "internal/api", "internal/web"},
	"internal/store/calendarstore":  {"internal/calendar", "internal/api"},
	"internal/store/executionstore": {"internal/execution", "internal/schedule", "internal/api"},
	"internal/store/grantstore":     {"internal/grant", "internal/billing", "internal/execution", "internal/api"},
	"internal/store/hookstore":      {"internal/hook", "internal/prune", "internal/api"},
	"internal/store/gaugestore":     {"internal/api"},
	"internal/store/workerstore":    {"internal/worker"},
	"internal/store/needstore":      {"internal/need"},
	"internal/store/userstore":      {"internal/access", "internal/prune", "internal/server", "internal/api", "internal/web"},
	"internal/store/prunestore":     {"internal/prune"},
}

// testOnly are packages for tests and releases, which product code must not import.
var testOnly = []string{"internal/lane/lanetest", "internal/need/needtest", "internal/npmtest", "internal/pgtest", "internal/bulk", "internal/mutant", "internal/notice", "internal/simulate", "internal/chaos"}

// longestFile is in lines. Past it a file has more than one duty.
const longestFile = 800

// C-65: the SQL that adds a job is in one place, so that nothing can add one
// without its bucket, its revision and its owner being told.
func TestJobsAreAddedInOnePlace(t *testing.T) {
	allowed := []string{"internal/store/job_enqueue.go", "internal/store/dialect_postgres.go", "internal/store/dialect_sqlite.go"}
	found := 0
	for name := range goFiles(t) {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "bench/") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "insert into jobs ") {
			continue
		}
		found++
		if !slices.Contains(allowed, name) {
			t.Errorf("%s adds jobs with SQL of its own; use Tx.Enqueue", name)
		}
	}
	if found != len(allowed) {
		t.Errorf("jobs are added in %d files, want %v", found, allowed)
	}
}

func TestEveryPackageIsDocumented(t *testing.T) {
	documented := map[string]bool{}
	for name, file := range goFiles(t) {
		dir := path.Dir(name)
		documented[dir] = documented[dir] || strings.TrimSpace(file.Doc.Text()) != ""
	}
	for _, dir := range slices.Sorted(maps.Keys(documented)) {
		if !documented[dir] {
			t.Errorf("%s: no file has a package comment; a reader learns there what the package owns", dir)
		}
	}
}

// A reader finds every folder of internal in the table of the architecture, and
// there no folder that is gone.
func TestEveryFolderIsInTheArchitecture(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if row, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok {
			for _, match := range regexp.MustCompile("`(internal/[a-z]+)`").FindAllStringSubmatch(row, -1) {
				told[match[1]] = true
			}
		}
	}
	there := map[string]bool{}
	for name := range goFiles(t) {
		if rest, ok := strings.CutPrefix(name, "internal/"); ok {
			folder, _, _ := strings.Cut(rest, "/")
			there["internal/"+folder] = true
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(there)) {
		if !told[folder] {
			t.Errorf("%s is not in the table of docs/architecture.md", folder)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(told)) {
		if !there[folder] {
			t.Errorf("docs/architecture.md tells of %s, which is not there", folder)
		}
	}
}

func TestImportsPointOneWay(t *testing.T) {
	for name, file := range productFiles(t) {
		from, known := layerOf(path.Dir(name))
		if !known {
			t.Errorf("%s: package %s is not in the table of layers; add it where it belongs, so that its imports are held too", name, path.Dir(name))
			continue
		}
		for _, imported := range importsOf(file) {
			if err := checkImport(from, imported); err != nil {
				t.Errorf("%s imports %s: %v", name, imported, err)
			}
		}
	}
}

// checkImport answers why the package may not import the path, or nil.
func checkImport(from, imported string) error {
	if from == "." && strings.Contains(imported, ".") {
		return fmt.Errorf("the root package has the standard library only, so that all others can speak its words")
	}
	inner, ours := strings.CutPrefix(imported+"/", modulePath+"/")
	if from == "client" && !ours && strings.Contains(imported, ".") {
		return fmt.Errorf("the client has the standard library and the root package only, because users' programs inherit what it imports")
	}
	if !ours {
		return nil
	}
	to, known := layerOf(path.Clean(inner))
	switch {
	case slices.Contains(testOnly, to):
		return fmt.Errorf("it is for tests only")
	case !known:
		return fmt.Errorf("it is not in the table of layers")
	case from == to || neighbours[from+" -> "+to] != "":
		return nil
	case rooms[to] != nil && !slices.Contains(rooms[to], from):
		return fmt.Errorf("the rows of %s are not those of %s; ask the package that owns them", to, from)
	case slices.Contains(pure, from) && to != ".":
		return fmt.Errorf("%s is pure: what it decides can be tested without a database, a network or a clock", from)
	case rank(to) == rank(from) && slices.Contains(pure, to):
		return nil
	case rank(to) == rank(from):
		return fmt.Errorf("both are in one layer; if it must be, add the edge and its reason to the neighbours")
	case rank(to) < rank(from):
		return fmt.Errorf("imports point down, from %s towards the root; take what is needed as an argument or an interface", from)
	}
	return nil
}

// layerOf returns the entry that a folder belongs to: a layer's or a test
// package's.
func layerOf(dir string) (entry string, known bool) {
	for ; ; dir = path.Dir(dir) {
		if rank(dir) >= 0 || slices.Contains(testOnly, dir) {
			return dir, true
		}
		if !strings.Contains(dir, "/") {
			return dir, false
		}
	}
}

// rank is the layer's number from the top, and -1 for no layer.
func rank(entry string) int {
	return slices.IndexFunc(layers, func(layer []string) bool { return slices.Contains(layer, entry) })
}

// mostMethods are the exported methods of one type. Past it the type is more
// than one thing.
const mostMethods = 60

func TestNoReceiverIsTooLarge(t *testing.T) {
	methods := map[string]int{}
	for name, file := range productFiles(t) {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !f.Name.IsExported() {
				continue
			}
			of := f.Recv.List[0].Type
			if star, ok := of.(*ast.StarExpr); ok {
				of = star.X
			}
			if id, ok := of.(*ast.Ident); ok {
				methods[path.Dir(name)+"."+id.Name]++
			}
		}
	}
	if methods["internal/store/runstore.Tx"] == 0 {
		t.Fatal("no method was found")
	}
	for of, n := range methods {
		if n > mostMethods {
			t.Errorf("%s has %d exported methods, more than %d", of, n, mostMethods)
		}
	}
}

func TestNoFileIsTooLong(t *testing.T) {
	for _, name := range repositoryFiles(t) {
		if path.Ext(name) != ".go" {
			continue
		}
		text := read(t, name)
		lines := bytes.Count(text, []byte("\n"))
		if lines > longestFile && !ast.IsGenerated(parse(t, name, text)) {
			t.Errorf("%s has %d lines, over %d: split it by duty, so that a file's name says what is in it", name, lines, longestFile)
		}
	}
}

func TestNoFileNamesAPathOfAMachine(t *testing.T) {
	// Put together here, so that this file passes its own rule. A path
	// starts a word; the same folders inside a URL or below another are fine.
	folders := []string{"root", "home", "work", "Users"}
	machinePath := regexp.MustCompile("(?m)(?:^|[\\s\"'`=:(,])/(?:" + strings.Join(folders, "|") + ")/[\\w.~-]+")
	for _, name := range repositoryFiles(t) {
		text := read(t, name)
		if bytes.IndexByte(text, 0) >= 0 {
			continue // not text
		}
		if !slices.ContainsFunc(folders, func(folder string) bool { return bytes.Contains(text, []byte("/"+folder+"/")) }) {
			continue // the expression alone takes long
		}
		for _, found := range machinePath.FindAllIndex(text, -1) {
			line := 1 + bytes.Count(text[:found[0]+1], []byte("\n"))
			t.Errorf("%s:%d names %s, which exists on one machine only", name, line, bytes.TrimSpace(text[found[0]:found[1]]))
		}
	}
}

func TestEveryDirectDependencyIsExplained(t *testing.T) {
	const explained = "docs/dependencies.md"
	direct, all := requirements(read(t, "go.mod"))
	lines := dependencyLines(read(t, explained))
	for _, module := range direct {
		if !slices.Contains(lines, module) {
			t.Errorf("%s has no line for %s: say what it does, why this one, and what was rejected", explained, module)
		}
	}
	for _, module := range lines {
		if !slices.Contains(all, module) {
			t.Errorf("%s explains %s, which go.mod does not require: remove the line", explained, module)
		}
	}
}

// requirements lists the modules of a go.mod: the direct ones, and all.
func requirements(gomod []byte) (direct, all []string) {
	requirement := regexp.MustCompile(`(?m)^(?:require )?\t?(\S+\.\S+/?\S*) v\S+( // indirect)?$`)
	for _, match := range requirement.FindAllSubmatch(gomod, -1) {
		module := string(match[1])
		all = append(all, module)
		if len(match[2]) == 0 {
			direct = append(direct, module)
		}
	}
	return direct, all
}

// dependencyLines lists the modules that start a row of the table, in
// backquotes.
func dependencyLines(text []byte) []string {
	var modules []string
	for _, match := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllSubmatch(text, -1) {
		modules = append(modules, string(match[1]))
	}
	return modules
}

func TestMigrationsAreNumberedWithoutGaps(t *testing.T) {
	const folder = "internal/store/migrations"
	format := regexp.MustCompile(`^(\d{4})_[a-z0-9_]+\.sql$`)
	next := 1
	for _, name := range repositoryFiles(t) { // sorted
		if path.Dir(name) != folder {
			continue
		}
		match := format.FindStringSubmatch(path.Base(name))
		if match == nil {
			t.Errorf("%s: migrations are called NNNN_name.sql, so that their order is plain", name)
			continue
		}
		if number, _ := strconv.Atoi(match[1]); number != next {
			t.Errorf("%s: the next number is %04d; a gap or a double makes databases that took different ways", name, next)
		}
		next++
	}
	if next == 1 {
		t.Errorf("%s has no migrations", folder)
	}
}

func TestProductNeedsNoC(t *testing.T) {
	for name, file := range productFiles(t) {
		if slices.Contains(importsOf(file), "C") {
			t.Errorf(`%s imports "C": Pawl is one static program, built without a C compiler`, name)
		}
	}
}

func TestNoTestIsSkipped(t *testing.T) {
	for name, file := range testFiles(t) {
		for _, receiver := range []string{"t", "tb", "b", "f"} {
			for _, method := range []string{"Skip", "Skipf", "SkipNow"} {
				if calls(file, receiver, method) {
					t.Errorf("%s calls %s.%s: a skipped test proves nothing and nobody notices; let it fail and say what is missing", name, receiver, method)
				}
			}
		}
	}
}

func TestTestsDoNotSleep(t *testing.T) {
	for name, file := range testFiles(t) {
		if calls(file, "time", "Sleep") && !slices.Contains(importsOf(file), "testing/synctest") {
			t.Errorf("%s calls time.Sleep: it is slow when it is long and fails when it is short; wait for the event, or run in a synctest bubble", name)
		}
	}
}
