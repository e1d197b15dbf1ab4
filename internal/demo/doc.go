// Package demo shows Pawl at work: a real server on SQLite, a small upstream
// on loopback, and scenes that give the server work.
//
// A scene is a file. It plays one promise of Pawl (on time, one at a time,
// healed after failures), looks at what happened from both sides, the stream
// of events and the upstream, and says whether the promise was kept. So the
// demo is also a check of the whole program, and fails when a promise breaks.
package demo
