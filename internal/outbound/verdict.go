package outbound

import (
	"net/http"

	"github.com/pawlrun/pawl"
)

// Effect says whether a request changes something at the other side.
type Effect string

// The two effects.
const (
	Read     Effect = "read"
	Mutation Effect = "mutation"
)

// EffectOf returns the effect that a method has by its definition. Whatever is
// not known to be a read is a mutation.
func EffectOf(method string) Effect {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return Read
	}
	return Mutation
}

// Happened says what became of a mutation at the other side.
type Happened string

// What can be known about a mutation. Reads are always NotHappened.
const (
	Applied     Happened = "applied"
	NotHappened Happened = "not_happened"
	Unknown     Happened = "unknown" // reconcile before doing anything else
)

// Verdict is what an answer, or the lack of one, means for the caller. Class
// is empty when the call succeeded.
type Verdict struct {
	Class    pawl.Class
	Happened Happened
}

// OK reports success.
func (v Verdict) OK() bool { return v.Class == "" }

// JudgeStatus says what the status of a complete answer means. A caller that
// sent a conditional request has to look for 304 first.
//
//	status              read         mutation
//	2xx                 ok           ok, applied
//	307 308             logic        logic, did not happen: it was to be sent elsewhere
//	other 3xx           logic        unknown
//	401                 auth         auth, did not happen
//	403                 permission   permission, did not happen
//	408 425 429         transient    transient, did not happen
//	other 4xx           logic        logic, did not happen
//	5xx, anything else  transient    unknown
func JudgeStatus(effect Effect, status int) Verdict {
	switch {
	case status >= 200 && status < 300:
		if effect == Read {
			return Verdict{"", NotHappened}
		}
		return Verdict{"", Applied}
	case status == http.StatusTemporaryRedirect, status == http.StatusPermanentRedirect:
		return Verdict{pawl.ClassLogic, NotHappened}
	case status >= 300 && status < 400:
		return unknownOr(effect, pawl.ClassLogic)
	case status == http.StatusUnauthorized:
		return Verdict{pawl.ClassAuth, NotHappened}
	case status == http.StatusForbidden:
		return Verdict{pawl.ClassPermission, NotHappened}
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests:
		return Verdict{pawl.ClassTransient, NotHappened}
	case status >= 400 && status < 500:
		return Verdict{pawl.ClassLogic, NotHappened}
	}
	return unknownOr(effect, pawl.ClassTransient)
}

// unknownOr is the verdict of a request that may have been carried out: unknown
// for a mutation, and an ordinary failure of the class for a read.
func unknownOr(effect Effect, class pawl.Class) Verdict {
	if effect == Read {
		return Verdict{class, NotHappened}
	}
	return Verdict{pawl.ClassIndeterminate, Unknown}
}
