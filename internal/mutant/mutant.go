// Package mutant switches planted faults on and off. No product code imports
// it: the command hunt writes copies of the product's files in which every
// condition and every step can be broken, builds the tests with these copies
// once, and then runs them with one fault after another. A fault that no test
// notices is a promise that nobody holds.
package mutant

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

const (
	// EnvActive names the one fault that is switched on, by its number.
	EnvActive = "PAWL_MUTANT"
	// EnvTrace names a file that gets the number of every fault that was reached.
	EnvTrace = "PAWL_MUTANT_TRACE"
)

var (
	active, _ = strconv.Atoi(os.Getenv(EnvActive)) //nolint:gochecknoglobals // read once, before the code under test runs
	trace     = openTrace(os.Getenv(EnvTrace))     //nolint:gochecknoglobals // as above
	reached   sync.Map                             //nolint:gochecknoglobals // shared by all copies in this process
)

// Flip is a condition, or its opposite where fault id is on.
func Flip[B ~bool](id int, condition B) B { return condition != B(on(id)) }

// Keep reports whether a step is made; it is left out where fault id is on.
func Keep(id int) bool { return !on(id) }

func on(id int) bool {
	if trace != nil {
		if _, known := reached.LoadOrStore(id, true); !known {
			_, _ = fmt.Fprintln(trace, id) // one write a line, so processes may share the file
		}
	}
	return id == active
}

func openTrace(name string) *os.File {
	if name == "" {
		return nil
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil // a process without files, such as a script's
	}
	return file
}
