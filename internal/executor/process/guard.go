package process

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	ossignal "os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Programs must not outlive this process, however it ends. The guard is a second
// process of the same program that is told the groups, and reads from a pipe that
// ends with this process. Then it ends the groups that are left.

// guardVariable makes a process the guard.
const guardVariable = "PAWL_PROCESS_GUARD"

// guardGrace is how long the guard waits between telling groups to end and killing
// them.
const guardGrace = 10 * time.Second

// startTime is more than a process needs from being forked to having its environment.
const startTime = 200 * time.Millisecond

func init() {
	if os.Getenv(guardVariable) == "1" {
		serve(os.Stdin)
		os.Exit(0)
	}
}

// keeper is this side of the guard.
type keeper struct {
	once sync.Once
	mu   sync.Mutex
	to   io.Writer // nil: there is no guard; guarded by mu
}

var theKeeper keeper //nolint:gochecknoglobals // one guard for the process

// guard is the guard of this process, which is started when it is first needed.
func guard() *keeper {
	theKeeper.once.Do(func() { theKeeper.to = startGuard() })
	return &theKeeper
}

// startGuard starts the second process; nil if that cannot be done. Programs are
// run all the same: where the system can, the first process of a group still dies
// with this one.
func startGuard() io.Writer {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	cmd := exec.Command(self) //nolint:noctx // it outlives this process
	cmd.Env = []string{guardVariable + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is not for it
	to, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return nil
	}
	go func() { _ = cmd.Wait() }() // it ends when this process does
	return to
}

// Before a program is started, nobody knows its group, and this process may be killed
// before it can tell. So the guard is told the mark of the program first.
func (k *keeper) expect(mark string) { k.tell('?', mark) }
func (k *keeper) met(mark string)    { k.tell('!', mark) }
func (k *keeper) watch(group int)    { k.tell('+', strconv.Itoa(group)) }
func (k *keeper) forget(group int)   { k.tell('-', strconv.Itoa(group)) }

func (k *keeper) tell(what rune, whom string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.to == nil || whom == "" || strings.Contains(whom, "\n") {
		return
	}
	if _, err := fmt.Fprintf(k.to, "%c%s\n", what, whom); err != nil {
		k.to = nil // it is gone
	}
}

// serve is the guard: it reads until the other process ends, and ends what is left
// of its groups.
func serve(from io.Reader) {
	ossignal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	groups, marks := told(from)
	for look := 0; look < 2 && len(marks) > 0; look++ {
		time.Sleep(time.Duration(look) * startTime) // what is being started may not have its environment yet
		for _, group := range marked(marks) {
			groups[group] = true
		}
	}
	for group := range groups {
		signal(group, syscall.SIGTERM)
	}
	for end := time.Now().Add(guardGrace); time.Now().Before(end) && anyLeft(groups); {
		time.Sleep(50 * time.Millisecond)
	}
	for group := range groups {
		signal(group, syscall.SIGKILL)
	}
}

// told are the groups and the marks that are left when the other process has ended.
func told(from io.Reader) (groups map[int]bool, marks map[string]bool) {
	groups, marks = map[int]bool{}, map[string]bool{}
	for lines := bufio.NewScanner(from); lines.Scan(); {
		line := lines.Text()
		if line == "" {
			continue
		}
		what, whom := line[0], line[1:]
		group, err := strconv.Atoi(whom)
		switch known := err == nil && group > 1; {
		case what == '?' && isMark(whom):
			marks[whom] = true
		case what == '!':
			delete(marks, whom)
		case what == '+' && known:
			groups[group] = true
		case what == '-':
			delete(groups, group)
		}
	}
	return groups, marks
}

func anyLeft(groups map[int]bool) bool {
	for group := range groups {
		if syscall.Kill(-group, 0) == nil {
			return true
		}
	}
	return false
}

// isMark reports whether a text is a name with a value: nothing else tells a program
// from all others.
func isMark(text string) bool {
	name, value, _ := strings.Cut(text, "=")
	return name != "" && value != ""
}
