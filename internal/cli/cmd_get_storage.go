package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/terms"
)

// storageWord is what get is asked for to tell how large the database is. It is
// one thing and no list, so it is no kind.
const storageWord = "storage"

// showStorage tells how large the database is.
func (g *getter) showStorage(ctx context.Context, args []string, watch bool) (err error) {
	if len(args) > 1 || watch {
		return usageError("pawl get storage", "storage is one thing: it has no name and cannot be watched")
	}
	if g.client, err = g.flags.connect(g.p); err != nil {
		return err
	}
	defer g.client.Close()
	raw, err := g.client.Get(ctx, client.StoragePath)
	if err != nil {
		return err
	}
	if g.out.machine() {
		return writeMachine(g.p.Stdout, g.out.format, raw)
	}
	var s client.Storage
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("read sizes: %w", err)
	}
	return g.writeStorage(s, time.Now())
}

func (g *getter) writeStorage(s client.Storage, now time.Time) error {
	d := newDescription(now)
	d.line("Database", s.Database+", "+roughSize(s.TotalBytes))
	if s.FreeBytes > 0 {
		d.line("Empty", roughSize(s.FreeBytes)+", used again")
	}
	if s.BytesPerDay != 0 {
		d.line("Growth", perDay(s.BytesPerDay))
	} else {
		d.line("Growth", "not known yet")
	}
	d.line("Disk", roomWords(s, now))
	if _, err := io.WriteString(g.p.Stdout, d.String()+"\n"); err != nil {
		return err
	}
	var tables, lanes [][]string
	for _, t := range s.Tables {
		if t.Rows > 0 || g.out.format == formatWide {
			tables = append(tables, []string{t.Name, about(t.Estimated) + strconv.FormatInt(t.Rows, 10), roughSize(t.Bytes), perDay(t.BytesPerDay)})
		}
	}
	for i, l := range s.Lanes {
		if g.limit > 0 && i == g.limit {
			break
		}
		lanes = append(lanes, []string{l.Kind, l.Name, strconv.FormatInt(l.Rows, 10), roughSize(l.Bytes), orDash(terms.KeepWords(l.Keep))})
	}
	if err := newSheet(g.p, []column{{title: "table", flex: true, least: 16}, {title: "rows"}, {title: "size"}, {title: "growth"}}).write(g.p.Stdout, tables, true); err != nil || len(lanes) == 0 {
		return err
	}
	if _, err := io.WriteString(g.p.Stdout, "\n"); err != nil {
		return err
	}
	return newSheet(g.p, []column{{title: "kind"}, {title: "lane", flex: true, least: 16}, {title: "rows"}, {title: "size"}, {title: "kept for"}}).write(g.p.Stdout, lanes, true)
}

func about(estimated bool) string {
	if estimated {
		return "~"
	}
	return ""
}

// perDay is what something grows by.
func perDay(bytes int64) string {
	switch {
	case bytes > 0:
		return roughSize(bytes) + " a day"
	case bytes < 0:
		return "-" + roughSize(-bytes) + " a day"
	}
	return "–"
}

// roomWords tell what the disk has left, and for how long.
func roomWords(s client.Storage, now time.Time) string {
	switch {
	case s.RoomBytes == nil:
		return "not known"
	case s.FullAt.IsZero():
		return roughSize(*s.RoomBytes) + " left"
	}
	return fmt.Sprintf("%s left, full in about %d days", roughSize(*s.RoomBytes), int(s.FullAt.Sub(now).Hours()/24))
}
