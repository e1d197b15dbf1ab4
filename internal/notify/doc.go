// Package notify tells people that a lane needs attention, that it still does,
// and that it works again: by webhook and by mail. It also sends the heartbeat
// whose absence tells them that Pawl itself is down.
//
// # From a cause to a person
//
//	a kind's transaction ── Notify ──► one job for each target ── Task ──► webhook or mailbox
//	      (state changes)    (same transaction)          (retries for a day)
//
// Notify is called in the transaction that changes the state, so a notice
// exists if and only if what it tells is true. Every webhook and every address
// of a mail is a target with a job of its own: one that is down delays no
// other. The job holds the notice and the name of its target (webhook-1,
// mail-2), never a URL, a password or a secret; those come from the settings
// of the process that delivers. All processes of a cluster must have the same
// targets.
//
// The key of a job is made of target, kind, lane, cause and what is told. So
// the same cause, told again while it waits for a target that is down, is one
// notice with the newest text.
//
// Notices of one lane reach a target in the order in which they arose, retries
// included: one that finds an older one waiting waits behind it. The last that
// a person reads is how things are.
//
// # Delivery
//
// A target has taken a notice when a webhook answers 2xx, or a mail server
// accepts the mail. Everything else is tried again, at growing intervals, 14
// times within a day; then the notice is lost, which is logged as an error and
// leaves a failed job. A webhook that answers 410 wants no more: this process
// sends it nothing until it starts anew.
//
// # Webhooks
//
// They follow the Standard Webhooks scheme. A request is a POST of
//
//	{"type": "lane.needs_attention", "timestamp": "2026-03-01T08:00:00.000Z",
//	 "data": {"kind": "workflow", "lane": "prices", "issue": "sign_in",
//	          "text": "Reconnect the account.", "runId": "...", "url": "https://..."}}
//
// with the type lane.needs_attention, lane.recovered or lane.reminder and these
// headers:
//
//	webhook-id         of the notice: the same for every attempt and target
//	webhook-timestamp  of the attempt, in seconds since 1970
//	webhook-signature  v1,base64(HMAC-SHA256(secret, id + "." + timestamp + "." + body))
//
// A secret that begins with whsec_ is base64 after that; any other is taken as
// it is. Without a secret there is no signature. The body is the same for every
// attempt.
//
// # What a crash does
//
// Before the commit there is no notice and nothing to tell. After it the job
// is in the database and is delivered by the next process. A process that dies
// between the answer of a target and the end of the job delivers again: with
// the same webhook-id, or the same Message-ID, by which a receiver knows that
// it has it. So no crash makes a notice forgotten; it can make it arrive twice
// under one id.
//
// # The heartbeat
//
// Heartbeat is a job that asks for a URL every minute while the queue is
// healthy. It travels the way of all jobs, so that it stops when they do: when
// the process, its database or its workers stop, the service behind the URL
// notices the silence. A beat that fails is not repeated; the next one comes.
package notify
