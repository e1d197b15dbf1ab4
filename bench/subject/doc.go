// Package subject is what a job queue must offer to be measured, and how the
// measuring program talks to it.
//
// Every queue runs in a process of its own, so that none inherits another's
// heap, pool or garbage collector. The measuring program and that process
// exchange one JSON object per line: a [Request] on standard input, one
// [Response] on standard output, strictly in turn. The end of standard input
// ends the process. Programs in other languages speak the same lines.
//
// The order of a measurement is
//
//	setup -> (expect -> bulk | each | paced -> start -> wait -> samples -> stop)... -> close
//
// where start may also come before the jobs. All clocks are read in the
// process of the queue: the pipe is in no measured path.
//
// The package has a module of its own, with no dependencies, because the
// queues that use it need versions of shared modules that exclude each other.
package subject
