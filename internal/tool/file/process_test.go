package file

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Tests start this program again, as another process: PAWL_TEST_CHILD is what
// it does there.
func TestMain(m *testing.M) {
	if task := os.Getenv("PAWL_TEST_CHILD"); task != "" {
		if err := child(strings.Fields(task)); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child works in the current folder.
func child(task []string) error {
	f, err := Open(".")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(task[1])
	if err != nil {
		return err
	}
	if task[0] == "append" {
		return appendMany(f, task[2], n)
	}
	// kill N METHOD: the process kills itself before the Nth step.
	f.step = func(string) error {
		if n--; n == 0 {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return nil
	}
	_, err = f.Call(context.Background(), killedCall(task[2]))
	return err
}

func killedCall(method string) connector.Call {
	return connector.Call{Method: method, Key: "key", Args: []byte(`{"path":"` + target + `","text":"new"}`)}
}

// appendMany appends n lines, whose data is as long as the writer's name and
// number ask for.
func appendMany(f *Folder, writer string, n int) error {
	for i := range n {
		call := connector.Call{Method: "append", Key: fmt.Sprintf("%s:%d", writer, i), Args: fmt.Appendf(nil, `{"path":"log","line":%q}`, lineOf(writer, i))}
		if _, err := f.Call(context.Background(), call); err != nil {
			return err
		}
	}
	return nil
}

func lineOf(writer string, i int) string {
	return fmt.Sprintf("%s %d %s", writer, i, strings.Repeat(writer, 1+i*37%500))
}

func startChild(t *testing.T, dir, task string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Dir, cmd.Stderr = dir, new(bytes.Buffer)
	cmd.Env = append(os.Environ(), "PAWL_TEST_CHILD="+task)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// context 3.6: what is promised for a process that is killed holds for one that
// really is.
func TestReconcileAfterAKilledProcess(t *testing.T) {
	for _, method := range []string{"append", "write"} {
		for n := 1; ; n++ {
			_, dir := open(t)
			cmd := startChild(t, dir, fmt.Sprintf("kill %d %s", n, method))
			if err := cmd.Wait(); err == nil {
				if n < 9 {
					t.Errorf("%s has only %d steps", method, n-1)
				}
				break
			} else if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
				t.Fatalf("%v: %s", err, cmd.Stderr)
			}
			answer := reconcile(t, reopen(t, dir), killedCall(method))
			want := map[connector.State]string{connector.Applied: "new", connector.NotApplied: ""}
			if text, known := want[answer.State]; !known || textOf(t, dir, target) != text {
				t.Errorf("%s killed before step %d: %s, and the file has %q", method, n, answer.State, textOf(t, dir, target))
			}
		}
	}
}

func TestAppendsOfManyDoNotMix(t *testing.T) {
	const lines = 25
	f, dir := open(t)
	writers := []string{"a", "b", "c", "d"}
	var group sync.WaitGroup
	for _, writer := range writers[:2] {
		other := reopen(t, dir) // one shares the connection with nobody, one has it twice
		group.Go(func() {
			if err := appendMany(f, writer, lines); err != nil {
				t.Error(err)
			}
		})
		group.Go(func() {
			if err := appendMany(other, writer, lines); err != nil { // the same keys
				t.Error(err)
			}
		})
	}
	for _, writer := range writers[2:] {
		cmd := startChild(t, dir, fmt.Sprintf("append %d %s", lines, writer))
		defer func() {
			if err := cmd.Wait(); err != nil {
				t.Fatalf("%v: %s", err, cmd.Stderr)
			}
			checkLines(t, textOf(t, dir, "log"), writer, lines)
		}()
	}
	group.Wait()
	for _, writer := range writers[:2] {
		checkLines(t, textOf(t, dir, "log"), writer, lines)
	}
}

// checkLines checks that each line of a writer is there once, whole and in
// order.
func checkLines(t *testing.T, text, writer string, n int) {
	t.Helper()
	i := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, writer+" ") {
			continue
		}
		if line != lineOf(writer, i)+"\n" {
			t.Fatalf("line %d of %s is %q", i, writer, line)
		}
		i++
	}
	if i != n {
		t.Errorf("%s has %d lines, want %d", writer, i, n)
	}
}

// An append to a file that is there is four syncs.
func BenchmarkAppend(b *testing.B) {
	f, err := Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	i := 0
	for b.Loop() {
		call := connector.Call{Method: "append", Key: strconv.Itoa(i), Args: []byte(`{"path":"log","line":"a line of a usual length, say"}`)}
		if _, err := f.Call(b.Context(), call); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
