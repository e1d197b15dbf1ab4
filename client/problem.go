package client

// Problem is how the API tells that it refuses a request (RFC 9457). The methods
// of Client turn it into a *pawl.Error.
type Problem struct {
	Type      string  `json:"type" example:"urn:pawl:problem:invalid" doc:"Names the kind of problem; it ends with the code."`
	Title     string  `json:"title" example:"The request is not valid" doc:"The kind of problem."`
	Status    int     `json:"status" example:"422" doc:"The HTTP status."`
	Code      string  `json:"code" example:"invalid" doc:"The kind of problem, for programs."`
	Detail    string  `json:"detail" example:"The request has a fault." doc:"What went wrong this time."`
	Hint      string  `json:"hint" example:"Use RFC 3339 with an offset, such as 2030-01-31T09:00:00Z." doc:"What to do about it."`
	Errors    []Fault `json:"errors,omitempty" nullable:"false" doc:"The faults of the input, each with its place."`
	RequestID string  `json:"requestId" example:"0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e" doc:"The request, as it is called in the server's log."`
}

// Fault is one fault of the input.
type Fault struct {
	Pointer string `json:"pointer" example:"/runAt" doc:"Where: a JSON pointer into the body, or / and the name of a parameter or header. Empty is the whole body."`
	Message string `json:"message" example:"must be an RFC 3339 date-time" doc:"What is wrong there."`
	Line    int    `json:"line,omitempty" minimum:"1" example:"12" doc:"In a script: its line, counted from 1. Absent elsewhere."`
	Column  int    `json:"column,omitempty" minimum:"1" example:"5" doc:"In a script: the column in UTF-16 units, as editors count, from 1. Absent elsewhere."`
}
