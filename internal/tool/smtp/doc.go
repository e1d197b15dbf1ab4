// Package smtp is the connector of a mail server, spoken to by SMTP. Scripts
// send plain text, HTML or both to at most 100 recipients.
//
// # What a script can do
//
// It chooses recipients, subject, texts and some headers. Who the sender is,
// which server is used and how to log in there is the operator's. What keeps a
// script from writing headers of its own is in internal/mail, as is the table of
// failures and of what they say about the message.
//
// The server is dialled through the guarded client. TLS is required, unless the
// definition says none, which works for loopback and private addresses only.
//
// There is no Reconcile: nobody can ask a mail server what became of a message,
// so that not knowing means to ask a person. The Message-ID is made of the
// idempotency key, so that the person can look for it in the server's log.
package smtp
