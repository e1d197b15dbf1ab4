package cli

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/visible"
)

func hookKind() kind {
	return kind{
		plural: "hooks", singular: "hook", path: client.HooksPath,
		removed: "deleted", loses: "Senders get 404 from then on.",
		columns: []column{
			{title: "name", flex: true, least: 12}, {title: "scheme"}, {title: "effect", flex: true, least: 16}, {title: "last"}, {title: "outcome", state: true}, {title: "issue", flex: true, spare: true},
			{title: "path", wide: true, flex: true}, {title: "updated", wide: true}, {title: "by", wide: true, flex: true},
		},
		row: hookRow,
	}
}

func hookRow(raw json.RawMessage, now time.Time) ([]string, error) {
	var h client.Hook
	if err := json.Unmarshal(raw, &h); err != nil {
		return nil, err
	}
	last, outcome := "-", "-"
	if h.LastDelivery != nil {
		last, outcome = relative(h.LastDelivery.ReceivedAt.Time, now), h.LastDelivery.Outcome
	}
	return []string{h.Name, h.Scheme, h.Effect, last, outcome, orDash(string(h.Issue)), h.Path, relative(h.UpdatedAt.Time, now), orDash(h.UpdatedBy)}, nil
}

// deliveryKind is what was sent to hooks.
func deliveryKind() kind {
	return kind{
		plural: "deliveries", singular: "delivery", below: "deliveries", parent: hookKind, everywhere: true, filters: []string{"outcome"},
		columns: []column{
			{title: "hook", flex: true, least: 8}, {title: "id"}, {title: "received"}, {title: "outcome", state: true}, {title: "effect or reason", flex: true, least: 20},
			{title: "delivery id", wide: true, flex: true}, {title: "attempts", wide: true}, {title: "bytes", wide: true},
		},
		row: func(raw json.RawMessage, now time.Time) ([]string, error) {
			var d client.Delivery
			if err := json.Unmarshal(raw, &d); err != nil {
				return nil, err
			}
			what := string(d.Reason)
			if what == "" {
				what = string(d.Effect)
			}
			return []string{
				d.Hook, d.ID, relative(d.ReceivedAt.Time, now), d.Outcome, orDash(visible.Text(what)),
				orDash(visible.Text(string(d.DeliveryID))), strconv.Itoa(d.Attempts), strconv.FormatInt(d.Bytes, 10),
			}, nil
		},
	}
}
