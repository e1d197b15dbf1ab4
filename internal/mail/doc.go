// Package mail builds messages and sends them by SMTP, for notices and for
// connections of type smtp.
//
// # Building
//
// A [Message] becomes lines of ASCII that any server takes: texts are
// quoted-printable, headers are encoded words (RFC 2047) and folded. Nothing in
// a message can start a line of its own in the headers or in the dialogue with
// the server: [ParseAddress] and [LineFault] refuse line breaks and everything
// that needs quotes or more than ASCII in an address, and encoding leaves no
// line break in a header. The same message with the same key and date has the
// same bytes and the same Message-ID.
//
// # Sending
//
// A [Server] is dialled by a function of the caller, which holds the rules of
// internal/outbound. TLS is required, unless the server says [TLSNone], which
// works for the addresses that its Plain allows.
//
// A message is for all recipients or for none. It is accepted when the server
// says so in answer to the dot that ends it, and not before:
//
//	failure                                        class          was it sent
//	the address has to be reached with TLS         permission     no
//	TLS required and not offered                   precondition   no
//	TLS handshake                                  transient      no
//	530, 534, 535, 538                             auth           no
//	4xx anywhere, also in answer to the dot        transient      no
//	other 5xx anywhere                             logic          no
//	connection lost or out of time before the dot  transient      no
//	the same after the dot, or a strange answer    indeterminate  nobody knows
//
// The dot is sent on its own, after everything before it left. Its answer is
// waited for even if the call is told to stop: there is no way to ask a mail
// server later.
package mail
