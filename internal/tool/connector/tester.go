package connector

import "context"

// Tester is a connection that can be tried out. Trying changes nothing outside.
type Tester interface {
	// Test tells in one sentence, for people, what it saw. An error, an
	// *Error, means that calls would not work either.
	Test(ctx context.Context) (saw string, err error)
}
