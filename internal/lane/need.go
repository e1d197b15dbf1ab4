package lane

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/terms"
)

// FreshGate is whether the sources that a lane needs are fresh.
func FreshGate(needs []client.Need, stale []terms.Stale, now time.Time) Gate {
	if len(stale) == 0 {
		return Gate{Name: "fresh", Open: true, Text: "What it needs is fresh: " + terms.NeedsWords(needs) + "."}
	}
	texts := make([]string, len(stale))
	for i, s := range stale {
		texts[i] = fmt.Sprintf("It needs %s; at most %s is allowed.", s.Words(now), s.MaxAge)
	}
	return Gate{Name: "fresh", Text: strings.Join(texts, " ")}
}
