package client

// Health is the answer of /healthz.
type Health struct {
	Status string `json:"status" enum:"ok"`
}

// Readiness is the answer of /readyz.
type Readiness struct {
	Status string            `json:"status" enum:"ok,unavailable"`
	Checks map[string]string `json:"checks" example:"{\"database\":\"ok\",\"queue\":\"ok\"}" doc:"What was looked at, with ok or what is wrong."`
	Canary *ReadinessCanary  `json:"canary,omitempty" doc:"The last round trip of the job by which this server proves every minute that jobs run. Absent: it runs none, or none has ended yet."`
	Halted *ReadinessHalt    `json:"halted,omitempty" doc:"Absent unless everything is halted. A server that is halted is ready."`
}

// ReadinessCanary is the last round trip of the canary.
type ReadinessCanary struct {
	EndedAt      Instant `json:"endedAt"`
	Milliseconds float64 `json:"milliseconds" example:"3.2" doc:"From when it was due until its end was written."`
}

// ReadinessHalt is that everything is halted, as everybody may know it.
type ReadinessHalt struct {
	Since Instant `json:"since"`
}

// SchemaPlace is where the JSON Schema of a kind is.
type SchemaPlace struct {
	Kind string `json:"kind" example:"source"`
	Path string `json:"path" example:"/api/v1/schemas/source"`
}
