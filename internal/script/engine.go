package script

import "errors"

// engine is all that a worker needs of a JavaScript engine, so that the engine
// can be replaced. It has one environment at a time, which serves one phase.
// One goroutine uses it, except for interrupt.
type engine interface {
	// compile translates JavaScript into code that this engine can load. Code
	// never leaves the process: engines trust it.
	compile(javascript string) (code, error)

	// open makes the environment what it was when the image was saved; with none
	// it has the prelude and nothing else. Whatever scripts did since is gone.
	open(*image)
	// save makes an image of the environment.
	save() *image
	// limit sets the most bytes of heap and the most nested calls.
	limit(heap int64, stack int)
	// load runs the top level of a program.
	load(code) error
	// dispatch hands a message to the prelude.
	dispatch(op, id, text string) error
	// settle runs promise jobs until none is left, at most about a million;
	// more says that there may be others.
	settle() (more bool, err error)
	// full reports whether next to no heap is left.
	full() bool
	// interrupt stops the script soon, or never when it is inside a built-in
	// function that does not look. It holds until open. Any goroutine may call
	// it, at any time.
	interrupt()
	// close forgets what the script left. What was opened cannot be used any more.
	close()
}

// code is what an engine loads.
type code []byte

// image is an environment as it was at some time: what differs from one that has
// the prelude and nothing else.
type image struct {
	blocks []uint32 // their numbers, in order
	words  []uint64 // blockWords of each, fewer of the last one if the environment ended there
}

// blockWords is how much is compared and copied at once.
const blockWords = 64

// size is how many bytes an image takes.
func (i *image) size() int { return len(i.words)*8 + len(i.blocks)*4 }

// hostFunc takes one message of the prelude and answers it. A panic in it ends
// the script, without its catch and finally blocks, and comes out of the
// method of the engine that was running it. Promises may swallow the end of the
// script, so hostFunc must refuse to act after it has panicked once.
type hostFunc func(op, text string) string

// errEngine is a fault of the engine itself; the worker ends.
var errEngine = errors.New("the JavaScript engine failed")

// scriptError is an exception that left the script.
type scriptError struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	Stack   string `json:"stack"`
	// Value says that something other than an Error was thrown, and Null that
	// it was null, which is also how the engine reports that it has no memory
	// left for an error.
	Value bool `json:"value"`
	Null  bool `json:"null"`
}

func (e *scriptError) Error() string { return e.Name + ": " + e.Message }
