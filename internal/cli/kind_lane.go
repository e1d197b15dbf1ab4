package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/client"
)

func laneKind() kind {
	return kind{
		plural: "lanes", singular: "lane", path: client.LanesPath, listed: true, filters: []string{"kind"}, sifts: []string{"status"},
		watch:   watchRules{events: []string{"workflow", "source", "schedule", "run"}, compare: laneNews},
		columns: append([]column{{title: "kind"}}, laneColumns()...),
		row: func(raw json.RawMessage, now time.Time) ([]string, error) {
			var l client.Lane
			if err := json.Unmarshal(raw, &l); err != nil {
				return nil, err
			}
			return append([]string{l.Kind}, laneCells(l, now)...), nil
		},
	}
}

// laneNews is what of a lane is worth a line. That it looked again and found
// nothing, as it does every few seconds, is not.
func laneNews(raw json.RawMessage) (json.RawMessage, error) {
	var l client.Lane
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, fmt.Errorf("read lane: %w", err)
	}
	l.NextAt, l.NextText, l.LastActivity.At = client.Instant{}, "", client.Instant{}
	return json.Marshal(l)
}

// laneColumns are the columns of everything that runs in a lane.
func laneColumns() []column {
	return []column{
		{title: "name", flex: true, least: 16}, {title: "status", state: true}, {title: "next"}, {title: "pending", spare: true}, {title: "activity", flex: true, least: 12},
		{title: "schedule", wide: true, flex: true}, {title: "labels", wide: true, flex: true}, {title: "id", wide: true},
	}
}

func laneCells(l client.Lane, now time.Time) []string {
	return []string{
		l.Name, l.Status, relative(l.NextAt.Time, now), pendingText(l.Pending, l.PendingMore), laneActivity(l, now),
		orDash(l.Schedule), orDash(labelWords(l.Labels)), l.ID,
	}
}

// pendingText is how much waits, and a plus if it is more than was counted.
func pendingText(n int, more bool) string {
	if more {
		return strconv.Itoa(n) + "+"
	}
	return strconv.Itoa(n)
}

// laneActivity is what one should know of a lane: what is the matter, or else
// what it did last.
func laneActivity(l client.Lane, now time.Time) string {
	switch {
	case l.Issue != "":
		return string(l.Issue)
	case l.LastActivity.Text == "":
		return "-"
	}
	return relative(l.LastActivity.At.Time, now) + ": " + l.LastActivity.Text
}

// labelWords writes labels as selectors take them.
func labelWords(labels map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, name+"="+labels[name])
	}
	return strings.Join(list, ",")
}
