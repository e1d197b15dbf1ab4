// Package mcp is the connector of servers that speak the Model Context
// Protocol: programs that Pawl starts and talks to over pipes, and servers on
// the network. The tools of a server are the methods of its connection, under
// the names that the server gives them.
//
// # What is trusted
//
// Nothing that a server says makes a call less guarded. A tool is a mutation
// unless the server declares it read-only, and the operator can only make it
// worse. Sampling, elicitation and roots are not offered. A program gets the
// environment that its definition lists, PATH and an empty home, and no other;
// a server on the network is reached through the guarded client.
//
// # Pins
//
// A pin is the hash of what a server says about a tool: its name, description,
// input schema and annotations. When a connection that has no pins meets its
// server for the first time, all tools are pinned as they are (trust on first
// use). From then on
//
//	as pinned   called
//	changed     refused: tool_changed
//	not pinned  refused: tool_not_pinned
//	gone        refused: tool_gone
//
// until somebody pins again. Pins are in a file beside the definition, with
// all that was agreed to, so that changes can be shown, and so that the
// methods are known while the server is down. A pin that is in the definition
// itself wins, and is only changed there.
//
// # Session
//
// One goroutine owns the session with the server:
//
//	connect ── shake hands, list the tools ──▶ attend ── it ends ──▶ wait ─┐
//	   ▲  └──────────── no ───────────────────────────────────────▶ wait ─┤
//	   └───────────────────────────────────────────────────────────────────┘
//
// The wait doubles from a quarter of a second to half a minute, and starts over
// after a session that lasted. Calls take the session that there is, and wait
// some seconds for one. A session that does not answer any more is ended, so
// that it is made anew. A program tells when its tools change; a server on the
// network is asked again when the list is older than a minute, which needs no
// connection between calls.
//
// A program runs in a process group of its own. It is asked to end by closing
// its input, then by SIGTERM, then by SIGKILL; whatever happens, the group is
// killed when the program has ended, and its end is waited for before the next
// one is started.
//
// # What became of a call
//
// The protocol has no idempotency keys and no way to ask about an earlier
// call, so no method reconciles. (The key is sent along, for servers that
// want it, as _meta "pawl.run/idempotencyKey".) For a mutation:
//
//	not one byte of the request left                         did not happen
//	answer: invalid params, method not found                 did not happen
//	HTTP status                                              as package outbound judges it
//	any other error in the answer, also isError              unknown
//	timeout, crash, broken connection, unreadable answer     unknown
//
// A request that certainly did not happen, because the session was gone before
// it was sent or because the server no longer knows it, is made once more in a
// new session.
package mcp
