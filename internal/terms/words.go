package terms

import (
	"fmt"

	"github.com/pawlrun/pawl/client"
)

// MissedWords say what becomes of slots that nobody was there for; empty if a
// definition does not say it.
func MissedWords(m *client.Missed) string {
	if m == nil {
		return ""
	}
	late := ""
	if m.Within != "" {
		late = " that is at most " + m.Within + " late"
	}
	switch m.Policy {
	case "last":
		return "last: the latest slot" + late + " runs later"
	case "all":
		return "all: every slot" + late + " runs later"
	}
	return m.Policy
}

// RetryWords say how often a slot is tried; empty if a definition does not say it.
func RetryWords(r *client.Retry) string {
	if r == nil {
		return ""
	}
	told := fmt.Sprintf("up to %d", r.Attempts)
	if r.Within != "" {
		told += " within " + r.Within
	}
	return told
}
