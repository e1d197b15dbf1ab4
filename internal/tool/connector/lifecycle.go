package connector

// Starter is a connection that goes on working between calls, such as one
// that runs a program, and that learns what it can do from the outside: its
// methods may be unknown until it is started, and may change afterwards. It
// is an io.Closer as well, because what was started has to be ended.
type Starter interface {
	// Start begins the work. It returns within seconds, also when the
	// outside does not answer; the work then goes on in the background.
	Start()
}
