package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/visible"
)

// Bounds of what is stored and sent, in characters.
const (
	longestText = 2000
	longestName = 300
)

func validate(n lane.Notice) error {
	switch n.What {
	case lane.NoticeAttention, lane.NoticeRecovered, lane.NoticeReminder:
	default:
		return fmt.Errorf("notify: unknown notice %q", n.What)
	}
	if n.Kind == "" || n.Name == "" {
		return fmt.Errorf("notify: the notice names no lane")
	}
	return nil
}

// letter is a notice on its way to one target: the payload of a job.
type letter struct {
	ID     string    `json:"id"` // sorts by time, and is the same for all targets
	Target string    `json:"target"`
	Kind   pawl.Kind `json:"kind"`
	Lane   string    `json:"lane"`
	What   string    `json:"what"`
	Issue  string    `json:"issue"`
	Text   string    `json:"text"`
	RunID  string    `json:"runId,omitempty"`
	At     time.Time `json:"at"`
	URL    string    `json:"url,omitempty"`
}

// letterOf gives the notice an id. Text is made fit for a header, a line of a
// mail and a column.
func letterOf(n lane.Notice, now time.Time, baseURL string) letter {
	at := n.At
	if at.IsZero() {
		at = now
	}
	url := n.URL
	if url == "" || strings.HasPrefix(url, "/") {
		url = baseURL + url
		if baseURL == "" {
			url = ""
		}
	}
	return letter{
		ID: store.NewID(), Kind: n.Kind, Lane: oneLine(n.Name, longestName), What: n.What, Issue: oneLine(string(n.Issue), longestName),
		Text: oneLine(n.Text, longestText), RunID: oneLine(n.RunID, longestName), At: at.UTC().Truncate(time.Millisecond), URL: url,
	}
}

// job is the job that carries the letter to the target.
func (l letter) job(target string) (store.JobSpec, error) {
	l.Target = target
	payload, err := json.Marshal(l)
	if err != nil {
		return store.JobSpec{}, fmt.Errorf("notify: write the notice: %w", err)
	}
	lane := strings.Join([]string{"notify", target, string(l.Kind), l.Lane}, ":")
	// A notice that waits takes over the newest text and keeps its turn; one
	// that is being delivered is followed by the new one.
	return store.JobSpec{Task: Name, Payload: payload, Lane: lane, Key: l.key(target), KeyMode: store.PreserveRunAt}, nil
}

// key is the same for what need not be told twice.
func (l letter) key(target string) string {
	parts, _ := json.Marshal([]string{target, string(l.Kind), l.Lane, l.Issue, l.What}) // strings always can be
	sum := sha256.Sum256(parts)
	return Name + ":" + hex.EncodeToString(sum[:16])
}

// oneLine makes text fit for one line of bounded length, on which everything can
// be seen.
func oneLine(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	s = visible.Text(strings.TrimSpace(s))
	if r := []rune(s); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return s
}
