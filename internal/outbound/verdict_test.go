package outbound

import (
	"errors"
	"testing"

	"github.com/pawlrun/pawl"
)

// Surface section 3, "What an answer means".
func TestJudgeStatusFollowsTheAnswerTable(t *testing.T) {
	unknown := Verdict{pawl.ClassIndeterminate, Unknown}
	no := func(class pawl.Class) Verdict { return Verdict{class, NotHappened} }
	for _, c := range []struct {
		status         int
		read, mutation Verdict
	}{
		{200, no(""), Verdict{"", Applied}},
		{201, no(""), Verdict{"", Applied}},
		{204, no(""), Verdict{"", Applied}},
		{299, no(""), Verdict{"", Applied}},
		{301, no(pawl.ClassLogic), unknown},
		{302, no(pawl.ClassLogic), unknown},
		{303, no(pawl.ClassLogic), unknown},
		{304, no(pawl.ClassLogic), unknown},
		{307, no(pawl.ClassLogic), no(pawl.ClassLogic)},
		{308, no(pawl.ClassLogic), no(pawl.ClassLogic)},
		{400, no(pawl.ClassLogic), no(pawl.ClassLogic)},
		{401, no(pawl.ClassAuth), no(pawl.ClassAuth)},
		{403, no(pawl.ClassPermission), no(pawl.ClassPermission)},
		{404, no(pawl.ClassLogic), no(pawl.ClassLogic)},
		{408, no(pawl.ClassTransient), no(pawl.ClassTransient)},
		{409, no(pawl.ClassLogic), no(pawl.ClassLogic)},
		{422, no(pawl.ClassLogic), no(pawl.ClassLogic)},
		{425, no(pawl.ClassTransient), no(pawl.ClassTransient)},
		{429, no(pawl.ClassTransient), no(pawl.ClassTransient)},
		{499, no(pawl.ClassLogic), no(pawl.ClassLogic)},
		{500, no(pawl.ClassTransient), unknown},
		{502, no(pawl.ClassTransient), unknown},
		{503, no(pawl.ClassTransient), unknown},
		{504, no(pawl.ClassTransient), unknown},
		{101, no(pawl.ClassTransient), unknown},
		{0, no(pawl.ClassTransient), unknown},
		{999, no(pawl.ClassTransient), unknown},
	} {
		if got := JudgeStatus(Read, c.status); got != c.read {
			t.Errorf("read %d: got %v, want %v", c.status, got, c.read)
		}
		if got := JudgeStatus(Mutation, c.status); got != c.mutation {
			t.Errorf("mutation %d: got %v, want %v", c.status, got, c.mutation)
		}
	}
}

func TestErrorVerdictFollowsTheAnswerTable(t *testing.T) {
	unknown := Verdict{pawl.ClassIndeterminate, Unknown}
	no := func(class pawl.Class) Verdict { return Verdict{class, NotHappened} }
	for name, c := range map[string]struct {
		err            Error
		read, mutation Verdict
	}{
		"invalid":        {Error{Kind: KindInvalid}, no(pawl.ClassLogic), no(pawl.ClassLogic)},
		"blocked":        {Error{Kind: KindBlocked}, no(pawl.ClassPermission), no(pawl.ClassPermission)},
		"dns":            {Error{Kind: KindDNS}, no(pawl.ClassTransient), no(pawl.ClassTransient)},
		"refused":        {Error{Kind: KindConnect}, no(pawl.ClassTransient), no(pawl.ClassTransient)},
		"tls":            {Error{Kind: KindTLS}, no(pawl.ClassTransient), no(pawl.ClassTransient)},
		"early timeout":  {Error{Kind: KindTimeout}, no(pawl.ClassTransient), no(pawl.ClassTransient)},
		"early cancel":   {Error{Kind: KindCancelled}, no(pawl.ClassTransient), no(pawl.ClassTransient)},
		"late timeout":   {Error{Kind: KindTimeout, MaybeSent: true}, no(pawl.ClassTransient), unknown},
		"late cancel":    {Error{Kind: KindCancelled, MaybeSent: true}, no(pawl.ClassTransient), unknown},
		"broken":         {Error{Kind: KindBroken, MaybeSent: true}, no(pawl.ClassTransient), unknown},
		"unreadable":     {Error{Kind: KindUnreadable, MaybeSent: true}, no(pawl.ClassTransient), unknown},
		"cut 200":        {Error{Kind: KindUnreadable, MaybeSent: true, Status: 200}, no(pawl.ClassTransient), unknown},
		"cut 422":        {Error{Kind: KindUnreadable, MaybeSent: true, Status: 422}, no(pawl.ClassLogic), no(pawl.ClassLogic)},
		"cut 500":        {Error{Kind: KindTimeout, MaybeSent: true, Status: 500}, no(pawl.ClassTransient), unknown},
		"too large 200":  {Error{Kind: KindTooLarge, MaybeSent: true, Status: 200}, no(pawl.ClassLogic), unknown},
		"redirected 307": {Error{Kind: KindRedirect, MaybeSent: true, Status: 307}, no(pawl.ClassLogic), no(pawl.ClassLogic)},
	} {
		if got := c.err.Verdict(Read); got != c.read {
			t.Errorf("%s, read: got %v, want %v", name, got, c.read)
		}
		if got := c.err.Verdict(Mutation); got != c.mutation {
			t.Errorf("%s, mutation: got %v, want %v", name, got, c.mutation)
		}
	}
}

func TestEffectOfTakesTheUnknownForAMutation(t *testing.T) {
	for method, want := range map[string]Effect{
		"": Read, "GET": Read, "HEAD": Read, "OPTIONS": Read,
		"POST": Mutation, "PUT": Mutation, "PATCH": Mutation, "DELETE": Mutation, "get": Mutation, "SEARCH": Mutation,
	} {
		if got := EffectOf(method); got != want {
			t.Errorf("%q: got %s, want %s", method, got, want)
		}
	}
}

func TestErrorIsAlsoAPawlError(t *testing.T) {
	for kind, want := range map[Kind]pawl.Code{
		KindBlocked: pawl.CodeInvalid, KindInvalid: pawl.CodeInvalid, KindRedirect: pawl.CodeInvalid,
		KindTooLarge: pawl.CodeTooLarge, KindTimeout: pawl.CodeUnavailable, KindConnect: pawl.CodeUnavailable,
	} {
		cause := errors.New("cause")
		var err error = &Error{Kind: kind, Method: "GET", Host: "example.com", Reason: "reason", Hint: "hint", Err: cause}
		e, ok := errors.AsType[*pawl.Error](err)
		if !ok || e.Code != want || e.Msg != "GET example.com: reason" || e.Hint != "hint" {
			t.Errorf("%s: got %+v, want code %s", kind, e, want)
		}
		if !errors.Is(err, cause) {
			t.Errorf("%s: the cause is lost", kind)
		}
	}
}
