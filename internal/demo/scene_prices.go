package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/examples"
	"github.com/pawlrun/pawl/internal/definition"
)

// pricesName is the source of examples/prices.
const pricesName = "prices"

// prices is a source, the one of examples/prices: all pages of the market end
// up in the table, although the market fails, dies in the middle of a page, and
// has a limit.
func prices() scene {
	return scene{name: "prices", promise: "a source fetches every page and stores every row once", play: playPrices}
}

func playPrices(ctx context.Context, s *stage) (string, error) {
	s.market.plan(map[int]fault{3: broken, 5: cut})
	if err := s.applyPrices(ctx); err != nil {
		return "", err
	}
	err := s.await(ctx, "all prices are fetched", func() (bool, error) {
		src, err := read[client.Source](ctx, s, client.SourcePath(pricesName))
		return !src.Freshness.LastSuccessAt.IsZero(), err
	})
	if err != nil {
		return "", err
	}
	rows, err := list[tableRow](ctx, s, client.SourcePath(pricesName, "rows"), nil)
	if err != nil {
		return "", s.ended(ctx, err)
	}
	want, refused := s.market.holds()
	if err := compareRows(want, rows); err != nil {
		return "", err
	}
	if refused > 0 {
		return "", fmt.Errorf("the market had to refuse %d calls over its limit", refused)
	}
	runs, err := list[client.RunDetail](ctx, s, client.RunsPath, url.Values{"kind": {"source"}, "lane": {pricesName}})
	if err != nil {
		return "", s.ended(ctx, err)
	}
	s.story.note("compared", fmt.Sprintf("%d rows of the table prices with the market, after %d runs", len(rows), len(runs)))
	return fmt.Sprintf("%d rows match the market, none twice, despite a 500 and a truncated page; the rate limit was respected", len(rows)), nil
}

// applyPrices applies the definition. One of an earlier start is deleted with
// its rows, because it was about another market.
func (s *stage) applyPrices(ctx context.Context) error {
	path := client.SourcePath(pricesName)
	if _, err := s.api.DeleteWith(ctx, path, nil); err != nil && !errors.Is(err, pawl.ErrNotFound) {
		return s.ended(ctx, fmt.Errorf("delete the earlier source: %w", err))
	}
	text, err := example(examples.Prices, "prices/prices.yaml",
		change{"http://127.0.0.1:8099", s.market.url},
		change{"schedule: hourly", "schedule: interval:15s\nexecution: {retryResetPeriod: 2s}"}, // a demo has no time for the usual minutes
	)
	if err != nil {
		return err
	}
	documents, err := definition.Read("prices.yaml", []byte(text))
	if err != nil {
		return err
	}
	if _, err := s.api.Put(ctx, path, documents[0].JSON()); err != nil {
		return s.ended(ctx, fmt.Errorf("apply the source: %w", err))
	}
	s.story.note("applied", "source prices")
	return nil
}

// tableRow is a row of the table prices.
type tableRow struct {
	Symbol    string      `json:"symbol"`
	Day       string      `json:"day"`
	Close     json.Number `json:"close"`
	ChangedAt time.Time   `json:"changed_at"`
}

// compareRows tells the first difference between the market and the table.
func compareRows(want []price, rows []tableRow) error {
	have := map[string]tableRow{}
	for _, r := range rows {
		day, _, _ := strings.Cut(r.Day, "T")
		key := r.Symbol + " of " + day
		if _, twice := have[key]; twice {
			return fmt.Errorf("the row %s is there twice", key)
		}
		have[key] = r
	}
	for _, p := range want {
		key := p.Symbol + " of " + p.Day
		r, there := have[key]
		if !there {
			return fmt.Errorf("the row %s is missing", key)
		}
		if value, err := r.Close.Float64(); err != nil || value != p.Quote.Close || !r.ChangedAt.Equal(p.UpdatedAt) {
			return fmt.Errorf("the row %s has %s of %s instead of %v of %s", key, r.Close, r.ChangedAt, p.Quote.Close, p.UpdatedAt)
		}
	}
	if len(rows) > len(want) {
		return fmt.Errorf("the table has %d rows, and the market %d", len(rows), len(want))
	}
	return nil
}
