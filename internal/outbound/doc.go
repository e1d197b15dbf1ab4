// Package outbound is the one HTTP client through which Pawl calls other
// people's servers: sources, tools, executors, job tasks and notifications.
//
// It makes three promises.
//
// # It calls public addresses only
//
// Every address is checked when it is dialled, after the name was resolved, so
// that neither a name, nor an odd spelling of an address, nor a redirect, nor
// a name that changes its mind can reach the inside of a network. Operators
// open single ranges with Config.AllowPrivate. Proxies are never used, because
// a proxy would do the dialling instead.
//
// # It sends a mutation at most once
//
// net/http resends a request by itself when an idle connection turns out to be
// dead, and it takes an Idempotency-Key header as leave to do so for a POST
// whose bytes were already written. Here every mutation gets a connection of
// its own, on HTTP/1.1, where net/http has no such rule; reads share
// connections and may be resent. The one exception is a 307 or 308 answer that
// points to the same origin: the server says that it did not do the thing and
// asks for the request again.
//
// # It says what is known about a call that went wrong
//
// Progress is watched from the transport's own trace:
//
//	asked for a connection -> TLS -> connected -> first byte of the answer
//	'--------- nothing was sent --------'  '-- it may have arrived ---'
//
// A failure before "connected" has Error.MaybeSent false, which is a
// guarantee. From there on it is true, even when not one byte may have left:
// in doubt, a mutation counts as unknown and is reconciled, never repeated.
// JudgeStatus and Error.Verdict turn an answer or an Error into a class and
// into what became of a mutation, by one table.
//
// Errors name method and host. They never hold a query string, a header, a
// body or userinfo.
package outbound
