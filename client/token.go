package client

// Token is a token in an answer, without its text.
type Token struct {
	ID         string   `json:"id" format:"uuid"`
	Name       string   `json:"name" example:"ci"`
	User       string   `json:"user" example:"admin" doc:"Whose token it is."`
	Scopes     []string `json:"scopes" nullable:"false" example:"[\"jobs:write\"]"`
	CreatedAt  Instant  `json:"createdAt"`
	ExpiresAt  Instant  `json:"expiresAt" nullable:"true" doc:"Null is never."`
	RevokedAt  Instant  `json:"revokedAt" nullable:"true"`
	LastUsedAt Instant  `json:"lastUsedAt" nullable:"true" doc:"Up to a minute behind."`
}

// CurrentToken is the token of whoever asks.
type CurrentToken struct {
	Token
	Role   string   `json:"role" enum:"viewer,operator,admin" doc:"Of its user. Scopes beyond the role do not count."`
	Routes []string `json:"routes" nullable:"false" example:"[\"GET /api/v1/lanes\"]" doc:"What it may ask for: the method and the path of every route that is open to it."`
}

// NewToken is the answer to the creation of a token.
type NewToken struct {
	Token
	Text NullString `json:"token" example:"pawl_5oEx..." doc:"The token itself. It is shown this once and cannot be had again; null when the answer is a repeated one."`
	Note string     `json:"note,omitempty" doc:"Why there is no token."`
}

// TokenRequest asks for a token.
type TokenRequest struct {
	Name      string   `json:"name" minLength:"1" maxLength:"128" example:"ci" doc:"What it is for."`
	Scopes    []string `json:"scopes" minItems:"1" maxItems:"64" uniqueItems:"true" nullable:"false" example:"[\"jobs:write\"]" doc:"What it may do: read, write, admin, one of a resource such as jobs:read, or *. You cannot give what you do not have."`
	ExpiresAt string   `json:"expiresAt,omitempty" format:"date-time" doc:"Until when. Absent is for ever."`
	ExpiresIn string   `json:"expiresIn,omitempty" maxLength:"64" doc:"For how long instead, such as 12h or 90d." example:"90d"`
	User      string   `json:"user,omitempty" minLength:"1" maxLength:"128" example:"ada" doc:"Whose token it is. Absent is yours; a new name adds a user, with the least role that allows the scopes."`
}
