package terms

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/pawlrun/pawl/client"
)

// Standing is how a lane stands to what is expected of it. It is stored in the row
// of the lane, and is all that a later judge has to know of an earlier one.
type Standing struct {
	Of       string    `json:"of,omitempty"`      // what was expected, as stored
	From     time.Time `json:"from,omitzero"`     // since when that is expected, or a person let the lane run again
	Rests    bool      `json:"rests,omitempty"`   // nothing is expected while the lane does not run by itself
	Success  time.Time `json:"success,omitzero"`  // about the newest success that was seen
	Done     string    `json:"done,omitempty"`    // the newest day that had one, such as 2030-01-31
	Resumed  bool      `json:"resumed,omitempty"` // From is when it was let run again, and its successes before count no more
	Verdicts []Verdict `json:"verdicts,omitempty"`
}

// Verdict is whether one thing that is expected is met.
type Verdict struct {
	Name     string    `json:"name"`
	Met      bool      `json:"met"`
	Since    time.Time `json:"since,omitzero"` // not met since then
	Sentence string    `json:"sentence"`
}

// ParseStanding is what Text wrote; what cannot be read is as nothing.
func ParseStanding(text string) (s Standing) {
	if text == "" || json.Unmarshal([]byte(text), &s) != nil {
		return Standing{}
	}
	return s
}

// Text is the form in which it is stored.
func (s Standing) Text() string {
	if s.Of == "" {
		return ""
	}
	raw, _ := json.Marshal(s) // of types that can be JSON
	return string(raw)
}

// Unmet are those that are not met.
func (s Standing) Unmet() (list []Verdict) {
	for _, v := range s.Verdicts {
		if !v.Met {
			list = append(list, v)
		}
	}
	return list
}

// Find is the verdict of a name; the zero one if there is none.
func (s Standing) Find(name string) Verdict {
	for _, v := range s.Verdicts {
		if v.Name == name {
			return v
		}
	}
	return Verdict{}
}

// SentenceOf is what the verdicts say, one after the other.
func SentenceOf(list []Verdict) string {
	var texts []string
	for _, v := range list {
		texts = append(texts, v.Sentence)
	}
	return strings.Join(texts, " ")
}

// VerdictsOf are the verdicts on what is expected of a lane now, by what its row
// says. What was not judged yet is taken for met.
func VerdictsOf(expect, expected string) (list []Verdict) {
	e := ParseExpect(expect)
	if e.Empty() {
		return nil
	}
	s := ParseStanding(expected)
	for _, name := range namesOf(e) {
		v := s.Find(name)
		switch {
		case s.Rests:
			v = Verdict{Name: name, Met: true, Sentence: "Nothing is expected while it does not run by itself."}
		case v.Name == "":
			v = Verdict{Name: name, Met: true, Sentence: "It has not been judged yet."}
		}
		list = append(list, v)
	}
	return list
}

// UnmetOf are those verdicts of a row that are not met.
func UnmetOf(expect, expected string) []Verdict {
	if expected == "" { // as most are
		return nil
	}
	return Standing{Verdicts: VerdictsOf(expect, expected)}.Unmet()
}

func namesOf(e *client.Expect) (names []string) {
	for _, one := range []struct {
		name string
		is   bool
	}{{FreshWithin, e.FreshWithin != ""}, {DoneBy, e.DoneBy != ""}, {Rows, e.Rows != ""}, {OnTime, e.OnTime != nil}} {
		if one.is {
			names = append(names, one.name)
		}
	}
	return names
}
