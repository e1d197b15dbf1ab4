package process

import "testing"

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
