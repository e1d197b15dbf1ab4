package client

// Need is a source that must be fresh before something of a lane starts.
type Need struct {
	Source string `json:"source" definition:"required" example:"prices" doc:"The name of the source."`
	MaxAge string `json:"maxAge" definition:"required" example:"1h" doc:"How long ago its last whole fetch may have ended, such as 1h."`
	Wait   string `json:"wait,omitempty" definition:"nonempty" example:"30m" doc:"How long a start waits for a fetch at most. Absent: 30m."`
}
