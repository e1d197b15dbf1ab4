// Package telemetry tells collectors of OpenTelemetry what this process does: spans and
// numbers, over OTLP. It is off unless a collector is named.
//
// The context of a call carries the trace that it belongs to, as W3C Trace Context
// describes it. It comes in with what others send (With) and goes out with every
// call (Pass), whether spans are exported or not.
//
// A collector that is slow or away holds nobody up: what has ended waits in a queue
// of bounded length, and what does not fit is dropped and counted.
package telemetry
