// Package e2e builds the program and treats it as a user would: over HTTP and
// the command line, with kill -9, restarts, a database that goes away, and on
// both databases. It holds tests only.
package e2e
