package retention

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
)

// The defaults are those that the documentation names.
func TestDefaultsAreThoseThatAreTold(t *testing.T) {
	want := "runs=90d idle-runs=1d reads=7d logs=30d events=30d slots=400d rejects=30d mutations=400d audit=400d receipts=forever job-history=7d"
	if got := strings.Join(Default().Texts(), " "); got != want {
		t.Errorf("the defaults are %s", got)
	}
	again, err := Parse(Default().Texts())
	if diff := cmp.Diff(Default(), again); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestAgesAreRead(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30d": 30 * day, "12h": 12 * time.Hour, "2w": 14 * day, "1d12h": 36 * time.Hour, "90s": 90 * time.Second, "1.5d": 36 * time.Hour,
		"-1d": -day, "36500d": longest, "999999999999999d": 2 * longest, "99999999w99999999w": 2 * longest,
	} {
		if got, err := ParseAge(text); err != nil || got != want {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "30", "d", "30 d", "30x", "1.2.3d", "--1d", "soon", "1d-1h", "9223372036854775807h"} {
		if got, err := ParseAge(text); err == nil && got <= longest {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// What makes no sense is refused with what to do about it.
func TestNonsenseIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"runs":              `"runs" has no age; Write KIND=AGE, such as runs=30d.`,
		"runs=":             `runs: "" is not an age; Write an age such as 12h, 30d or 2w, or forever.`,
		"runs=-1d":          `runs: "-1d" keeps nothing; Write an age above zero, or forever.`,
		"runs=0s":           `runs: "0s" keeps nothing; Write an age above zero, or forever.`,
		"runs=1ns":          `runs: "1ns" is too short; Write an age such as 12h, 30d or 2w; the shortest is 1s.`,
		"reads=999ms":       `reads: "999ms" is too short; Write an age such as 12h, 30d or 2w; the shortest is 1s.`,
		"runs=30":           `runs: "30" is not an age; Write an age such as 12h, 30d or 2w, or forever.`,
		"runs=1000y":        `runs: "1000y" is not an age; Write an age such as 12h, 30d or 2w, or forever.`,
		"runs=36501d":       `runs: "36501d" is longer than 100 years; Write forever.`,
		"receipts=1d":       `receipts: "1d" is too short; Keep them for 2d or longer: limits of a day are judged by them.`,
		"slots=1h":          `slots: "1h" is too short; Keep them for 2d or longer: missed instants and backfills are judged by them.`,
		"audit=1s":          `audit: "1s" is too short; Keep them for 1d or longer: nobody may do something and have it forgotten at once.`,
		"mutations=1h":      `mutations: "1h" is too short; Keep them for 1d or longer: a call is reconciled by them for up to a day.`,
		"runz=1d":           `there is nothing called "runz" to keep; Did you mean runs? Kinds: runs, idle-runs,`,
		"job-history=never": `job-history: "never" is not an age`,
	} {
		_, err := Parse([]string{text})
		e, ok := errors.AsType[*pawl.Error](err)
		if !ok || e.Code != pawl.CodeInvalid || !strings.HasPrefix(e.Msg+"; "+e.Hint, want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := ParseLane([]string{"audit=forever"}); err == nil || !strings.Contains(err.Error(), "not those of one lane") {
		t.Errorf("a lane keeps audit: %v", err)
	}
	ages, err := ParseLane([]string{"runs=1d", "runs=2d", "reads=forever"})
	if diff := cmp.Diff(Ages{Runs: 2 * day, Reads: Forever}, ages); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestLanesHaveTheirOwnAges(t *testing.T) {
	mail := Lane{pawl.KindWorkflow, "mail"}
	p := Policy{All: Default(), Lanes: map[Lane]Ages{mail: {Runs: day}, {pawl.KindSource, "prices"}: {Runs: Forever, Rejects: day}}}
	if got := p.Of(mail)[Runs]; got != day {
		t.Error(got)
	}
	if got := p.Of(mail)[Logs]; got != 30*day {
		t.Error(got)
	}
	if got := len(p.Special(Runs)); got != 2 || p.Special(Runs)[0].Lane != "prices" {
		t.Error(p.Special(Runs))
	}
	if got := p.Special(Reads); got != nil {
		t.Error(got)
	}
}
