package process

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// The guard is there before a program is: this process may be killed while it
// starts the guard, and nobody would end what the program started meanwhile.
func TestTheGuardComesBeforeTheProgram(t *testing.T) {
	if _, err := (Program{Command: []string{"/nowhere/to/be/found"}}).Run(t.Context()); err == nil {
		t.Error("a program that is not there was started")
	}
	theKeeper.mu.Lock()
	defer theKeeper.mu.Unlock()
	if theKeeper.to == nil {
		t.Error("there is no guard")
	}
}

// A process that is killed after it has started a program, and before it could say
// which group that is, leaves nothing behind: the guard finds it by its mark. What has
// another mark, or none, is not touched.
func TestTheGuardFindsWhatItWasNotToldOf(t *testing.T) {
	begin := func(mark string) <-chan error {
		cmd := exec.Command("/bin/sleep", "300")
		cmd.Env, cmd.SysProcAttr = []string{mark}, &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		return ended
	}
	mark := func(name string) string { return fmt.Sprintf("PAWL_RUN_ID=%s-%d", name, os.Getpid()) }
	lost := begin(mark("lost"))
	met := begin(mark("met"))
	other := begin(mark("other"))
	serve(strings.NewReader("?" + mark("lost") + "\n?" + mark("met") + "\n!" + mark("met") + "\n"))
	if err := <-lost; err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("it ended with %v", err)
	}
	for name, ended := range map[string]<-chan error{"met": met, "other": other} {
		select {
		case err := <-ended:
			t.Errorf("%s was ended: %v", name, err)
		default:
		}
	}
}

// What is no mark and no group is nobody's: every environment ends with an empty entry.
func TestTheGuardTakesNothingForEverything(t *testing.T) {
	groups, marks := told(strings.NewReader("?\n?A\n?A=\n?=1\n\n+\n+1\n+0\n+-7\n+x\n!\n-\n"))
	if len(groups) != 0 || len(marks) != 0 {
		t.Errorf("it would end %v and %v", groups, marks)
	}
	if hasMark("A=1\x00", map[string]bool{"": true}) {
		t.Error("everything has a mark that is empty")
	}
}

// What is told of a program is its mark before it is there, and its group once it is.
func TestWhatTheGuardIsTold(t *testing.T) {
	guard() // the real one is left alone
	theKeeper.mu.Lock()
	real := theKeeper.to
	var told strings.Builder
	theKeeper.to = &told
	theKeeper.mu.Unlock()
	defer func() { theKeeper.to = real }()
	if exit, err := (Program{Command: []string{"/bin/true"}, Mark: "A=1"}).Run(t.Context()); exit != nil || err != nil {
		t.Fatal(exit, err)
	}
	if ok, _ := regexp.MatchString(`^\?A=1\n\+(\d+)\n!A=1\n-\d+\n$`, told.String()); !ok {
		t.Errorf("it was told\n%s", told.String())
	}
	told.Reset()
	if _, err := (Program{Command: []string{"/nowhere"}, Mark: "A=1"}).Run(t.Context()); err == nil || told.String() != "?A=1\n!A=1\n" {
		t.Errorf("%v: it was told\n%s", err, told.String())
	}
	told.Reset()
	if _, err := (Program{Command: []string{"/bin/true"}, Mark: "A=1\n+1234"}).Run(t.Context()); err != nil || strings.Contains(told.String(), "1234") {
		t.Errorf("%v: a mark told\n%s", err, told.String())
	}
}
