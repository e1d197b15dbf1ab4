package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// Grants that are made for schedules have the caps of the settings; those that people
// make have the caps that they say.
func TestAutomaticGrantsAreCapped(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		for _, c := range []struct{ day, run, want string }{
			{Default().GrantUSDPerDay, Default().GrantUSDPerRun, `"caps":{"usdPerDay":50,"usdPerRun":null,"runsPerDay":null}`},
			{"2.5", "0.10", `"caps":{"usdPerDay":2.5,"usdPerRun":0.1,"runsPerDay":null}`},
			{"none", "none", `"caps":{"usdPerDay":null,"usdPerRun":null,"runsPerDay":null}`},
		} {
			cfg := configOf(t, database)
			cfg.GrantUSDPerDay, cfg.GrantUSDPerRun = c.day, c.run
			r := launch(t, cfg)
			u := &up{t, r.url, strings.TrimPrefix(r.auth, "Bearer ")}
			status, raw := u.ask(u.admin, "POST", "/api/v1/schedules", `{"name":"s`+strings.ReplaceAll(c.day, ".", "-")+`","graphId":"workflow:poet","cron":"0 0 1 1 *","timezone":"UTC"}`)
			var made struct{ ExecutionGrantID string }
			if err := json.Unmarshal([]byte(raw), &made); status != http.StatusCreated || err != nil {
				t.Fatalf("%d %s", status, raw)
			}
			if _, raw := u.ask(u.admin, "GET", "/api/v1/grants/"+made.ExecutionGrantID, ""); !strings.Contains(raw, c.want) {
				t.Errorf("%s a day: %s", c.day, raw)
			}
			if _, raw := u.ask(u.admin, "POST", "/api/v1/grants", `{"scopes":["graph:execute:workflow:x"]}`); !strings.Contains(raw, `"caps":{"usdPerDay":null,"usdPerRun":null,"runsPerDay":null}`) {
				t.Errorf("one that a person made: %s", raw)
			}
			r.stop()
		}
	})
}

func TestBadCapsAreRefused(t *testing.T) {
	for _, text := range []string{"-1", "0", "0.0", "lots", "1 USD", "99999999999999999999", "NaN"} {
		if amount, err := CapOf(text); err == nil || amount != nil {
			t.Errorf("%s is %v", text, amount)
		}
		cfg := Default()
		cfg.GrantUSDPerDay = text
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The queue of a server knows the task that ends the hold of a daily cap.
func TestAHoldEndsOnARunningServer(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		cfg := configOf(t, database)
		r := launch(t, cfg)
		r.schedule("held", "0 0 1 1 *")
		r.stop()
		r.with(func(ctx context.Context, tx *store.Tx) error {
			var id string
			if err := tx.QueryRow(ctx, `select id from schedules where name = 'held'`).Scan(&id); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `update schedules set capped_until = 1, issue = 'x' where id = $1`, id); err != nil {
				return err
			}
			return lane.ArmContinue(ctx, tx, rows{}, pawl.KindSchedule, id, time.Now())
		})
		r = launch(t, cfg)
		u := &up{t, r.url, strings.TrimPrefix(r.auth, "Bearer ")}
		eventually(t, "it goes on", func() bool {
			_, raw := u.ask(u.admin, "GET", "/api/v1/schedules", "")
			return strings.Contains(raw, `"held"`) && !strings.Contains(raw, "cappedUntil")
		})
	})
}

// rows arms jobs while no server runs.
type rows struct{}

func (rows) EnqueueTx(ctx context.Context, tx *store.Tx, specs ...store.JobSpec) ([]store.Job, error) {
	return tx.Enqueue(ctx, specs)
}
