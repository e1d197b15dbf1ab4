// Package quota keeps the book of calls: how often each domain of the outside
// was called, how often it may be, and what it asked for. It also holds the
// credentials of domains, which provider files define.
//
// # The book
//
// Every domain has at most one page, a row of rate_limiter_state. A provider
// gives its domain a limit in a fixed window:
//
//	now - window start >= period   a new window begins with this call
//	count < limit                  the call is counted and made
//	else                           it is denied until the window ends
//
// Acquire does that in one statement of the database, so all goroutines and
// all processes share one count. Peek reads the page and changes nothing. A
// call is counted before it is made, so a crash can lose a call of the quota
// but never gives one back.
//
// A domain without a provider has no limit of its own. Any domain can ask for
// rest: Learn reads the headers of every answer, and nobody is let through
// before the instant they name. What a server can ask for is bounded, by one
// hour, or by the provider's period up to a day.
//
// Instants come from the clocks of the processes. A clock that is put back
// makes a domain wait for two periods, or the longest rest, at most.
//
// # Credentials
//
// Secrets come from the environment and from files, live in memory only, and
// are told to nobody: errors name domains, variables and files. OAuth2 tokens
// are shared by all calls of a domain; one request at a time renews them,
// before they expire or when the server refuses one.
package quota
