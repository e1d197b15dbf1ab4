// Package httptool is the connector of a web service. Scripts call it with
// get and head, which are reads, and post, put, patch and delete, which are
// mutations.
//
// # What a script can reach
//
// Only what is below the base URL of the definition: the path of a call is
// put behind it and can neither name another host nor climb out with .., in
// any spelling. The credentials are headers of the definition; a script can
// not set or change these, nor the headers that say who is asked, how long
// the body is, or that the method is another one than that of the call. Where
// the host may be is decided by package outbound, when it dials.
//
// Should the service echo a secret, its name is put in place of it, in results
// and in errors. Of the headers of an answer only known harmless ones are
// passed on.
//
// # What an answer means
//
//	answer                                read         mutation
//	2xx                                   result       applied
//	401 / 403                             auth / permission, and it did not happen
//	402                                   precondition, and it did not happen
//	408, 425, 429                         transient, Retry-After honoured, and it did not happen
//	307, 308 that is not followed         logic, and it did not happen
//	other 3xx                             logic        unknown
//	other 4xx                             logic, and it did not happen
//	nothing was sent: refused, DNS, TLS   transient, and it did not happen
//	the address may not be called         permission, and it did not happen
//	too large an answer                   logic        unknown
//	5xx, cut off, late or unreadable      transient    unknown
//
// 304 is the result of a read that asked for it with if-none-match or
// if-modified-since. A mutation is sent at most once; every one carries the
// idempotency key of the host in a header.
//
// # Reconcile
//
// The definition may say, for each mutation, which GET tells whether it
// happened. Its path is made out of the key and the arguments before the
// mutation is sent, so that one that could not be asked about is not sent.
//
//	404, 2xx without what is looked for   it is not there
//	2xx with it                           applied; what was found is the result
//	anything else                         ask later
//
// The GET sees what the service shows at that moment. A service that is still
// working on the mutation, or that it has not reached yet, shows nothing: so
// "not there" counts as "it did not happen" only after absentAfter, which is
// counted by the host from the instant at which it wrote the call down, and
// the call that is then made carries the same key. By default it is
// three times the timeout, and at least a minute; it should be longer than the
// service ever takes.
package httptool
