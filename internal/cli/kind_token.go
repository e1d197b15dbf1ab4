package cli

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/pawlrun/pawl/client"
)

const tokensPath = "/api/v1/tokens"

func tokenKind() kind {
	return kind{
		plural: "tokens", singular: "token", path: tokensPath, removed: "revoked",
		columns: []column{
			{title: "id"}, {title: "name", flex: true}, {title: "state", state: true}, {title: "scopes", flex: true},
			{title: "used"}, {title: "expires"}, {title: "created", wide: true}, {title: "user", wide: true},
		},
		row: tokenRow,
	}
}

func tokenRow(raw json.RawMessage, now time.Time) ([]string, error) {
	var t client.Token
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, err
	}
	return []string{
		t.ID, orDash(t.Name), tokenState(t, now), orDash(strings.Join(t.Scopes, ",")),
		relative(t.LastUsedAt.Time, now), relative(t.ExpiresAt.Time, now), relative(t.CreatedAt.Time, now), orDash(t.User),
	}, nil
}

func tokenState(t client.Token, now time.Time) string {
	switch {
	case !t.RevokedAt.IsZero():
		return "revoked"
	case !t.ExpiresAt.IsZero() && !t.ExpiresAt.After(now):
		return "expired"
	}
	return "active"
}
