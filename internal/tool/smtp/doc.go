// Package smtp is the connector of a mail server, spoken to by SMTP. Scripts
// send plain text, HTML or both to at most 100 recipients.
//
// # What a script can do
//
// It chooses recipients, subject, texts and some headers. Who the sender is,
// which server is used and how to log in there is the operator's. Nothing that
// a script says can begin a line of its own in the head of the message or in
// the dialogue with the server: texts with line breaks in such places are
// refused, addresses are plain ASCII without anything that needs quoting, and
// the texts are sent in quoted-printable, with the dots of SMTP doubled.
//
// The server is dialled through the guarded client. TLS is required, unless the
// definition says none, which works for loopback and private addresses only.
//
// # What became of a message
//
// A message is for all recipients or for none: if the server refuses one of
// them, nothing is sent. It is accepted when the server says so in answer to
// the dot that ends it, and not before:
//
//	failure                                        class          did it happen
//	no connection, DNS                             transient      no
//	the address may not be called                  permission     no
//	TLS required and not offered                   precondition   no
//	TLS handshake                                  transient      no
//	530, 534, 535, 538                             auth           no
//	4xx anywhere, also in answer to the dot        transient      no
//	other 5xx anywhere                             logic          no
//	connection lost or out of time before the dot  transient      no
//	the same after the dot, or a strange answer    indeterminate  nobody knows
//
// The dot is sent on its own, after everything before it left. Once it has been
// sent the answer is waited for, even if the call is told to stop: there is no
// way to ask a mail server later, so that not knowing means to bother a person.
// For the same reason there is no Reconcile. The Message-ID is made of the
// idempotency key, so that the person can look for it in the server's log.
package smtp
