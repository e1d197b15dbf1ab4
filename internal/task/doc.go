// Package task holds the tasks that are built in, so that the queue is useful
// on its own: http calls a URL, log writes a line. Tasks whose name begins
// with "pawl." keep the house and are not for users.
package task
