package client

// Health is the answer of /healthz.
type Health struct {
	Status string `json:"status" enum:"ok"`
}

// Readiness is the answer of /readyz.
type Readiness struct {
	Status string            `json:"status" enum:"ok,unavailable"`
	Checks map[string]string `json:"checks" example:"{\"database\":\"ok\",\"queue\":\"ok\"}" doc:"What was looked at, with ok or what is wrong."`
}

// SchemaPlace is where the JSON Schema of a kind is.
type SchemaPlace struct {
	Kind string `json:"kind" example:"source"`
	Path string `json:"path" example:"/api/v1/schemas/source"`
}
