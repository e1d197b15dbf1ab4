package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// step is a command of a document, and what it prints according to it.
type step struct {
	command string
	output  []string // nil where the document shows none
	line    int
}

// stepsOf reads the commands of a document, in its order: all of blocks marked
// sh, and of blocks marked console what follows a dollar sign.
func stepsOf(t *testing.T, file string) (steps []step) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", file))
	if err != nil {
		t.Fatal(err)
	}
	block := ""
	for i, line := range strings.Split(string(text), "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && block == "":
			block = fence
			if block == "" {
				block = "text"
			}
			if block == "sh" {
				steps = append(steps, step{line: i + 2})
			}
		case isFence:
			block = ""
		case block == "sh":
			steps[len(steps)-1].command += line + "\n"
		case block == "console" && strings.HasPrefix(line, "$ "):
			steps = append(steps, step{command: line[2:], output: []string{}, line: i + 1})
		case block == "console" && len(steps) > 0:
			last := &steps[len(steps)-1]
			last.output = append(last.output, line)
		}
	}
	return steps
}

// shell is one shell in which the commands of a document are run.
type shell struct {
	t      *testing.T
	dir    string
	in     io.Writer
	out    *bufio.Reader
	ports  *strings.Replacer // of the document to free ones
	back   *strings.Replacer
	number int
}

// newShell starts a shell in a folder with what a clone has. The ports of the
// document are free ones here, so that nothing on this machine is in the way.
func newShell(t *testing.T) *shell {
	t.Helper()
	s := &shell{t: t, dir: t.TempDir()}
	var there, back []string
	for _, port := range []string{"7295", "8097", "8098", "8099"} {
		_, free, _ := strings.Cut(freeAddr(t), ":")
		there, back = append(there, port, free), append(back, free, port)
	}
	s.ports, s.back = strings.NewReplacer(there...), strings.NewReplacer(back...)
	if err := os.CopyFS(filepath.Join(s.dir, "examples"), os.DirFS("../examples")); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(s.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(s.ports.Replace(string(text))), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Link(binary, filepath.Join(s.dir, "pawl")); err != nil {
		text, _ := os.ReadFile(binary)
		if err := os.WriteFile(filepath.Join(s.dir, "pawl"), text, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("bash", "--noprofile", "--norc")
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "PAWL_ADDR="+s.ports.Replace("127.0.0.1:7295"), "PATH="+s.dir+":"+os.Getenv("PATH"), "NO_COLOR=1", "TERM=dumb")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.in, s.out = in, bufio.NewReader(out)
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // and what it left running
		_ = cmd.Wait()
		if log, err := os.ReadFile(filepath.Join(s.dir, "background.log")); err == nil && t.Failed() {
			t.Logf("what ran in the background said:\n%s", log)
		}
	})
	return s
}

// prepared is a command as it is run here. The clone and the program are there
// already, what runs in the background speaks into a file, and what goes on for
// ever is interrupted.
func (s *shell) prepared(command string) string {
	var lines []string
	for line := range strings.SplitSeq(s.ports.Replace(command), "\n") {
		code := strings.TrimSpace(regexp.MustCompile(`\s+#.*$`).ReplaceAllString(line, ""))
		switch {
		case strings.HasPrefix(code, "git clone"), strings.HasPrefix(code, "go build"):
			continue
		case strings.HasSuffix(code, "&"):
			line = strings.TrimSuffix(code, "&") + ` >>"` + s.dir + `/background.log" 2>&1 &`
		case strings.HasSuffix(code, " -w"):
			line = "timeout --preserve-status -s INT 4 " + code
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// run runs a command and returns what it printed, as the document would show it.
func (s *shell) run(command string) (output string, status string) {
	s.t.Helper()
	s.number++
	end := fmt.Sprintf("@@@ %d ended ", s.number)
	if _, err := fmt.Fprintf(s.in, "{ %s\n} 2>&1; ended=$?; echo; echo \"%s$ended\"\n", strings.TrimRight(s.prepared(command), "\n"), end); err != nil {
		s.t.Fatal(err)
	}
	var b strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if status, ended := strings.CutPrefix(line, end); ended {
			return s.back.Replace(strings.TrimSuffix(b.String(), "\n")), strings.TrimSpace(status)
		}
		if b.WriteString(line); err != nil {
			s.t.Fatalf("the shell ended: %v\n%s", err, b.String())
		}
	}
}

// plain is a text without what is different at every run: ids, instants,
// durations and the width of columns.
func plain(text string) string {
	for _, change := range [][2]string{
		{`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, "ID"},
		{`in_[0-9a-f]{32}`, "INPUT"},
		{`\b\d{17,19}\b`, "JOB"},
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`, "INSTANT"},
		{`\bin \d+(\.\d+)? (ms|s)\b`, "LATER"},
		{`\b(in )?(\d+[dhms])+( ago)?\b`, "LATER"},
		{`\bnow\b`, "LATER"},
		{` +`, " "},
		{` \n`, "\n"},
	} {
		text = regexp.MustCompile(change[0]).ReplaceAllString(text, change[1])
	}
	return strings.TrimRight(text, " \n")
}

// same reports whether an output is the one of the document, in which a line of
// three dots stands for any lines.
func same(want []string, got string) bool {
	var parts []string
	for _, line := range want {
		if line == "..." {
			parts = append(parts, `(.*\n)*?.*`)
			continue
		}
		parts = append(parts, regexp.QuoteMeta(plain(line)))
	}
	return regexp.MustCompile(`^` + strings.Join(parts, "\n") + `$`).MatchString(plain(got))
}

// follow runs the commands of a document in their order. A command that only
// looks is asked again until it shows what the document does: a reader takes a
// moment, too.
func (s *shell) follow(file string, steps []step) {
	s.t.Helper()
	looks := regexp.MustCompile(`^(\./)?pawl (get|why|describe|status)\b|^cat `)
	for _, st := range steps {
		if strings.Contains(st.command, "pawl demo") {
			continue // it has a test of its own
		}
		place := fmt.Sprintf("%s:%d: $ %s", file, st.line, strings.TrimSpace(st.command))
		output, status := s.run(st.command)
		deadline := time.Now().Add(time.Minute)
		for looks.MatchString(st.command) && st.output != nil && !same(st.output, output) && time.Now().Before(deadline) {
			output, status = s.run("sleep 0.2; " + st.command)
		}
		switch {
		case st.output == nil && status != "0":
			s.t.Fatalf("%s ended with %s:\n%s", place, status, output)
		case st.output != nil && !same(st.output, output):
			s.t.Fatalf("%s\nprinted:\n%s\nand the document shows:\n%s\nthat is\n%s\nand\n%s", place, output, strings.Join(st.output, "\n"), plain(output), plain(strings.Join(st.output, "\n")))
		}
	}
}

// README, the quick start and the guide of hooks can be followed from top to bottom, each in one
// shell with one server, and print what they show.
func TestDocumentsCanBeFollowed(t *testing.T) {
	for _, file := range []string{"README.md", "docs/quickstart.md", "docs/hooks.md"} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			steps := stepsOf(t, file)
			if file == "README.md" { // what follows is about other machines, and about working on Pawl itself
				for i, st := range steps {
					if strings.Contains(st.command, "--database postgres://") {
						steps = steps[:i]
						break
					}
				}
			}
			if len(steps) < 6 {
				t.Fatalf("only %d commands were found", len(steps))
			}
			newShell(t).follow(file, steps)
		})
	}
}

// The commands that the demo prints can be pasted while it goes on, and README
// shows what it prints.
func TestDemoPrintsCommandsThatWork(t *testing.T) {
	demo := exec.Command(binary, "demo", "--once=false")
	demo.Dir = t.TempDir()
	out := &logBuffer{}
	demo.Stdout, demo.Stderr = out, out
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = demo.Process.Kill(); _ = demo.Wait() })
	s := &server{t: t}
	s.eventually("the demo goes on", func() bool {
		return strings.Contains(out.String(), "In another terminal:") && strings.Contains(out.String(), " status ")
	})
	_, printed, _ := strings.Cut(out.String(), "In another terminal:\n")
	printed, _, _ = strings.Cut(printed, "\n\n")
	sh := newShell(t)
	commands := strings.Split(strings.TrimSpace(printed), "\n")
	if len(commands) != 5 {
		t.Fatalf("it prints:\n%s", printed)
	}
	for _, command := range commands {
		output, status := sh.run(strings.TrimSpace(command))
		if strings.Contains(command, " status") && status == "1" && strings.Contains(output, "attention") {
			continue // something waits for a person
		}
		if status != "0" || strings.Contains(output, "error:") || !strings.HasPrefix(strings.TrimSpace(command), "export") && output == "" {
			t.Errorf("$ %s\nended with %s:\n%s", command, status, output)
		}
	}
	readme := stepsOf(t, "README.md")
	for _, line := range readme[0].output {
		if promise, ok := strings.CutPrefix(line, "✓ "); ok && !strings.Contains(plain(out.String()), plain("✓ "+promise)) {
			t.Errorf("README shows the promise %q, and the demo does not", promise)
		}
	}
}
