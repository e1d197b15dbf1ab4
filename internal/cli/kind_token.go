package cli

import (
	"encoding/json"
	"strings"
	"time"
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

// apiToken is a token as the API lists it; the secret is never in it.
type apiToken struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	User       string    `json:"user"`
	Scopes     []string  `json:"scopes"`
	CreatedAt  time.Time `json:"createdAt"`
	ExpiresAt  time.Time `json:"expiresAt"`
	RevokedAt  time.Time `json:"revokedAt"`
	LastUsedAt time.Time `json:"lastUsedAt"`
}

func tokenRow(raw json.RawMessage, now time.Time) ([]string, error) {
	var t apiToken
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, err
	}
	return []string{
		t.ID, orDash(t.Name), t.state(now), orDash(strings.Join(t.Scopes, ",")),
		relative(t.LastUsedAt, now), relative(t.ExpiresAt, now), relative(t.CreatedAt, now), orDash(t.User),
	}, nil
}

func (t apiToken) state(now time.Time) string {
	switch {
	case !t.RevokedAt.IsZero():
		return "revoked"
	case !t.ExpiresAt.IsZero() && !t.ExpiresAt.After(now):
		return "expired"
	}
	return "active"
}
