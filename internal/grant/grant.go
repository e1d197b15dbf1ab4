package grant

import (
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store/grantstore"
)

// Grant is the right to run graphs in the name of a user.
type Grant struct {
	ID                string
	UserID            string
	BillingAccountID  string
	Scopes            []string
	Caps              Caps
	WildcardConsentAt time.Time // zero: no consent was given
	Automatic         bool      // made for one schedule, and revoked with it
	ExpiresAt         time.Time // zero is never; the instant itself is expired
	RevokedAt         time.Time // zero unless revoked
	CreatedAt         time.Time
}

// Caps bound what runs under a grant may cost. Nil is no bound; days are
// those of the account's zone.
type Caps struct {
	USDPerDay  *pawl.USD `json:"usdPerDay"`
	USDPerRun  *pawl.USD `json:"usdPerRun"`
	RunsPerDay *int64    `json:"runsPerDay"`
}

func fromStore(g grantstore.Grant) Grant {
	return Grant{
		ID: g.ID, UserID: g.UserID, BillingAccountID: g.AccountID, Scopes: g.Scopes,
		Caps:              Caps{USDPerDay: (*pawl.USD)(g.USDPerDay), USDPerRun: (*pawl.USD)(g.USDPerRun), RunsPerDay: g.RunsPerDay},
		WildcardConsentAt: g.WildcardConsentAt, Automatic: g.Automatic,
		ExpiresAt: g.ExpiresAt, RevokedAt: g.RevokedAt, CreatedAt: g.CreatedAt,
	}
}
