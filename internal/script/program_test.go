package script

import (
	"strings"
	"testing"
)

// A program gives back what was compiled, and takes less memory than that: a
// server has thousands of them.
func TestProgramIsKeptPacked(t *testing.T) {
	program := compileTest(t, "export default { name: 'packed',\n"+strings.Repeat("  // a comment that nobody runs\n", 50)+"  topics: {} };")
	again := NewProgram("f", program.JavaScript(), program.SourceMap())
	if again.JavaScript() != program.JavaScript() || string(again.SourceMap()) != string(program.SourceMap()) || !strings.Contains(again.JavaScript(), `"packed"`) {
		t.Errorf("it became\n%s\n%s", again.JavaScript(), again.SourceMap())
	}
	if text := len(program.JavaScript()) + len(program.SourceMap()); len(program.packed) > text/2 || cap(program.packed) > 2*len(program.packed) {
		t.Errorf("%d bytes are kept as %d", text, cap(program.packed))
	}
	if strings.Contains(string(program.SourceMap()), "nobody runs") {
		t.Error("the map has the source in it, which is stored already")
	}
	if empty := NewProgram("f", "", nil); empty.JavaScript() != "" || len(empty.SourceMap()) != 0 || (&Program{}).JavaScript() != "" {
		t.Error("a program of nothing has something in it")
	}
}
