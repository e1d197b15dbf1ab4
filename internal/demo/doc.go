// Package demo shows Pawl at work: a real server on SQLite, a small world on
// loopback (a market, an order desk, a poet), and scenes that give the server
// work, with the definitions of examples.
//
// A scene is a file. It plays one promise of Pawl (on time, one at a time,
// healed after failures), looks at what happened from both sides, the stream
// of events and the world, and says whether the promise was kept. So the
// demo is also a check of the whole program, and fails when a promise breaks.
//
// When the scenes are over the world can go on by itself, for people to look
// at: letters arrive, prices change, orders are wished for.
package demo
