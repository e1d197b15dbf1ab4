package script

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// probeWord makes the tests' program confine itself and try what it must not.
const probeWord = "confined-probe"

// probeMain tells what a confined process can do. It never returns.
func probeMain(what string) {
	memory := openMeter()
	if err := closeInherited(memory); err != nil {
		panic(err)
	}
	if what == "server" {
		serverMain()
	}
	report := map[string]string{"files": openFiles(), "environment": strings.Join(os.Environ(), " ")}
	_, confined, err := confine(8<<20, memory)
	if err != nil || !confined {
		panic(fmt.Sprint("not confined: ", err))
	}
	if what == "memory" {
		if _, err := newPages(arenaSize(8 << 20)); err != nil { // as the engine does
			panic(err)
		}
		eat := make([][]byte, 0)
		for range 64 {
			block := make([]byte, 64<<20)
			for i := 0; i < len(block); i += 4096 {
				block[i] = 1
			}
			eat = append(eat, block)
		}
		runtime.KeepAlive(eat)
		os.Exit(0)
	}
	for name, try := range probes() {
		report[name] = fmt.Sprint(try())
	}
	_ = json.NewEncoder(rawFile(1)).Encode(report)
	os.Exit(0)
}

// serverMain is a server with one worker that is busy for ever. It says which
// process that is.
func serverMain() {
	p, err := NewPool(Config{Workers: 1})
	if err != nil {
		panic(err)
	}
	program, err := Compile("x.ts", handler(`if (state) { ctx.publish("a", {}); for (;;) {} }`))
	if err != nil {
		panic(err)
	}
	req := Request{Program: program, Handler: handlerPath}
	if _, err := p.Run(context.Background(), req, nil, Limits{}); err != nil {
		panic(err)
	}
	pid := p.idle[0].cmd.Process.Pid
	host := &fakeHost{answer: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		_, err := fmt.Fprintln(rawFile(1), pid)
		return nil, err
	}}
	req.Args = []rawJSON{rawJSON("true")}
	_, err = p.Run(context.Background(), req, host, Limits{CPU: time.Hour, Wall: time.Hour})
	panic(err)
}

func openFiles() string {
	entries, _ := os.ReadDir("/proc/self/fd")
	var names []string
	for _, entry := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil && !strings.HasPrefix(target, "anon_inode:") {
			names = append(names, target)
		}
	}
	return strings.Join(names, " ")
}

// probes are the attempts; each returns the error that it met.
func probes() map[string]func() error {
	return map[string]func() error{
		"open":                          func() error { _, err := os.Open("/etc/passwd"); return err },
		"create":                        func() error { _, err := os.Create("/dev/shm/x"); return err },
		"socket":                        func() error { _, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); return err },
		"unix socket":                   func() error { _, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); return err },
		"exec":                          func() error { return syscall.Exec("/bin/true", []string{"true"}, nil) },
		"fork":                          func() error { _, err := syscall.ForkExec("/bin/true", []string{"true"}, nil); return err },
		"kill the server":               func() error { return syscall.Kill(os.Getppid(), 0) },
		"signal a thread of the server": func() error { return unix.Tgkill(os.Getppid(), os.Getppid(), 0) },
		"trace":                         func() error { return unix.PtraceAttach(os.Getppid()) },
		"read the server": func() error {
			local, remote := []byte{0}, unix.RemoteIovec{Len: 1}
			_, err := unix.ProcessVMReadv(os.Getppid(), []unix.Iovec{{Base: &local[0], Len: 1}}, []unix.RemoteIovec{remote}, 0)
			return err
		},
		"new code": func() error {
			_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
			return err
		},
		"limits": func() error {
			return unix.Prlimit(0, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
		},
		"mount": func() error { return unix.Unshare(unix.CLONE_NEWUSER) },
		"io_uring": func() error {
			if _, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0); errno != 0 {
				return errno
			}
			return nil
		},
	}
}

func probe(t *testing.T, what string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", probeWord, what)
	cmd.Env = []string{}
	inherited, err := os.Open("/etc/hostname")
	if err != nil {
		t.Fatal(err)
	}
	defer closeFile(inherited)
	cmd.ExtraFiles = []*os.File{inherited}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err = cmd.Run()
	return out.String(), said.String(), err
}

func TestWorkersDieWithTheServer(t *testing.T) {
	server := exec.CommandContext(t.Context(), "/proc/self/exe", probeWord, "server")
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	var worker int
	if _, err := fmt.Fscanln(out, &worker); err != nil {
		t.Fatalf("the server did not say: %v", err)
	}
	if group, err := syscall.Getpgid(worker); err != nil || group != worker {
		t.Errorf("the worker is in group %d, %v: a signal of the terminal would end it", group, err)
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait() // it was killed
	soon(t, "the worker is gone", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", worker))
		return err != nil || strings.Contains(string(stat), ") Z ") // ended, and nobody has asked
	})
}

func TestWorkerCanReachNothing(t *testing.T) {
	stdout, stderr, err := probe(t, "calls")
	var report map[string]string
	if err != nil || json.Unmarshal([]byte(stdout), &report) != nil {
		t.Fatalf("the probe: %v\n%s\n%s", err, stdout, stderr)
	}
	for name := range probes() {
		if got := report[name]; !strings.HasSuffix(got, unix.EPERM.Error()) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if strings.Contains(report["files"], "hostname") {
		t.Errorf("an inherited file is open: %s", report["files"])
	}
	if report["environment"] != "" {
		t.Errorf("environment %q", report["environment"])
	}
}

func TestWorkerCannotTakeAllMemory(t *testing.T) {
	_, stderr, err := probe(t, "memory")
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Success() || !strings.Contains(stderr, "alloc") && !strings.Contains(stderr, "memory") {
		t.Fatalf("4 GiB were to be had: %v\n%.300s", err, stderr)
	}
}

func TestWorkersSayThatTheyAreConfined(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	_ = valueOf(t, p, "return 1", nil)
	if got := p.idle[0].hello; !got.Confined || got.Protection != "resource limits and a system call filter" {
		t.Errorf("%+v", got)
	}
}
