package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/grant"
)

// grantKind are the rights to run graphs in the name of a user.
func grantKind() kind {
	return kind{
		plural: "grants", singular: "grant", path: client.GrantsPath, owned: true,
		columns: []column{
			{title: "id"}, {title: "state", state: true}, {title: "graphs", flex: true, least: 16}, {title: "caps", flex: true, least: 12}, {title: "expires"}, {title: "created", spare: true},
			{title: "made for", wide: true}, {title: "account", wide: true}, {title: "user", wide: true},
		},
		row: func(raw json.RawMessage, now time.Time) ([]string, error) {
			var g client.Grant
			if err := json.Unmarshal(raw, &g); err != nil {
				return nil, err
			}
			madeFor := "-"
			if g.Automatic {
				madeFor = "a schedule"
			}
			return []string{
				g.ID, grantState(g, now), orDash(strings.Join(graphsOf(g), ",")), orDash(capWords(g.Caps)), relative(g.ExpiresAt.Time, now), relative(g.CreatedAt.Time, now),
				madeFor, orDash(g.BillingAccountID), orDash(g.UserID),
			}, nil
		},
		describe: describeGrant,
	}
}

func grantState(g client.Grant, now time.Time) string {
	switch {
	case !g.RevokedAt.IsZero():
		return "revoked"
	case !g.ExpiresAt.IsZero() && !g.ExpiresAt.After(now):
		return "expired"
	}
	return "active"
}

// graphsOf are the graphs that a grant allows; * is every graph.
func graphsOf(g client.Grant) []string {
	var list []string
	for _, scope := range g.Scopes {
		list = append(list, strings.TrimPrefix(scope, grant.ScopeFor("")))
	}
	return list
}

// capWords tell what runs under a grant may cost; empty if there is no bound.
func capWords(c client.Caps) string {
	var list []string
	if c.USDPerDay != nil {
		list = append(list, usd(*c.USDPerDay)+" a day")
	}
	if c.USDPerRun != nil {
		list = append(list, usd(*c.USDPerRun)+" a run")
	}
	if c.RunsPerDay != nil {
		list = append(list, plural(int(*c.RunsPerDay), "run")+" a day")
	}
	return strings.Join(list, ", ")
}

// describeGrant tells what may run under a grant.
func describeGrant(raw json.RawMessage, now time.Time) (string, error) {
	var g client.Grant
	if err := json.Unmarshal(raw, &g); err != nil {
		return "", fmt.Errorf("read grant: %w", err)
	}
	d := newDescription(now)
	graphs := strings.Join(graphsOf(g), ", ")
	if graphs == "*" {
		graphs = "every graph, of now and later"
	}
	d.say("The grant %s lets %s run in the name of the user %s.", g.ID, graphs, g.UserID)
	switch grantState(g, now) {
	case "revoked":
		d.say("It is revoked: nothing runs under it any more.")
	case "expired":
		d.say("It has expired: nothing runs under it any more.")
	default:
		d.say("It is active. Revoke it with: pawl grant revoke %s", g.ID)
	}
	if g.Automatic {
		d.say("It was made for one schedule, and is revoked with it.")
	}
	d.gap()
	d.line("State", grantState(g, now))
	d.line("Caps", capWords(g.Caps))
	if capWords(g.Caps) == "" {
		d.line("Caps", "none: what runs may cost is not bounded")
	}
	d.line("Account", g.BillingAccountID)
	d.instant("Consent", g.WildcardConsentAt.Time)
	d.instant("Expires", g.ExpiresAt.Time)
	d.instant("Revoked", g.RevokedAt.Time)
	d.instant("Created", g.CreatedAt.Time)
	return d.String(), nil
}

// receiptKind are the charges for what graphs used.
func receiptKind() kind {
	return kind{
		plural: "receipts", singular: "receipt", path: client.ReceiptsPath, owned: true, filters: []string{"account", "grant", "run"},
		instead: "Receipts are in lists only: pawl get receipts --run RUN",
		watch:   watchRules{events: []string{"schedule"}},
		columns: []column{
			{title: "when"}, {title: "amount"}, {title: "executor"}, {title: "model", flex: true, least: 10}, {title: "in"}, {title: "out"}, {title: "run", spare: true},
			{title: "price", wide: true}, {title: "try", wide: true}, {title: "schedule", wide: true}, {title: "grant", wide: true}, {title: "id", wide: true},
		},
		row: func(raw json.RawMessage, now time.Time) ([]string, error) {
			var r client.Receipt
			if err := json.Unmarshal(raw, &r); err != nil {
				return nil, err
			}
			return []string{
				relative(r.CreatedAt.Time, now), amountWords(r), orDash(r.Executor), orDash(string(r.Model)), strconv.FormatInt(r.InputTokens, 10), strconv.FormatInt(r.OutputTokens, 10), r.RunID,
				orDash(string(r.Price)), strconv.Itoa(r.Attempt), orDash(string(r.ScheduleID)), orDash(string(r.GrantID)), r.ID,
			}, nil
		},
	}
}

// amountWords is what a unit cost.
func amountWords(r client.Receipt) string {
	if r.CostSource == "unknown" {
		return "unknown"
	}
	return usd(r.AmountUSD)
}
