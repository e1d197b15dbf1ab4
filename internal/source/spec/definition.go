// Package spec reads and checks the definitions of sources: what is fetched,
// how its rows are read, where they go and when. It is pure.
package spec

import "encoding/json"

// Definition says what a source fetches and where it goes. Its JSON, once
// normalised, is its stored form: equal meaning has equal bytes.
type Definition struct {
	Name             string            `json:"name" definition:"required"`
	Description      string            `json:"description,omitempty"`
	URL              string            `json:"url" definition:"required"`
	Table            string            `json:"table" definition:"required"`
	Schedule         Schedule          `json:"schedule"`
	Status           string            `json:"status"`
	Params           []Pair            `json:"params,omitempty"`
	Headers          []Pair            `json:"headers,omitempty"`
	Execution        Execution         `json:"execution"`
	Response         Response          `json:"response"`
	Write            Write             `json:"write"`
	OffsetPagination *OffsetPagination `json:"offsetPagination,omitempty"`
	CursorPagination *CursorPagination `json:"cursorPagination,omitempty"`
	LinkPagination   *LinkPagination   `json:"linkPagination,omitempty"`
	Incremental      *Incremental      `json:"incremental,omitempty"`
	Publish          *Publish          `json:"publish,omitempty"`
	Labels           map[string]string `json:"labels,omitempty"`

	// StatusGiven reports whether the status was written down, so that an
	// update without one can keep what is stored. It is no part of the JSON.
	StatusGiven bool `json:"-"`
}

// Active is the status of a source that runs; any other is skipped.
const Active = "active"

// Pair is a parameter of the query or a header, in the order of the definition.
type Pair struct {
	Name  string `json:"name" definition:"required"`
	Value string `json:"value"`
}

// Schedule says when a source is due: after an interval, or by cron.
type Schedule struct {
	Interval string `json:"interval,omitempty"`
	Cron     string `json:"cron,omitempty"`
	Timezone string `json:"timezone,omitempty"`
}

// Execution bounds a run and its retries.
type Execution struct {
	Timeout          int    `json:"timeout"` // seconds, for the whole fetch
	MaxRetries       int    `json:"maxRetries"`
	RetryResetPeriod string `json:"retryResetPeriod"`
}

// Format is what an answer is written in.
type Format string

// The formats.
const (
	JSON   Format = "json"
	NDJSON Format = "ndjson"
	CSV    Format = "csv"
)

// Response says how rows are read from an answer.
type Response struct {
	Format    Format     `json:"format" definition:"oneof=json|ndjson|csv"`
	DataPath  string     `json:"dataPath,omitempty"` // dotted; empty is the root
	Fields    []Field    `json:"fields"`
	ErrorWhen *ErrorWhen `json:"errorWhen,omitempty"`
	Raw       bool       `json:"raw,omitempty"` // keep each row as it came, in the column _raw
	MaxPages  int        `json:"maxPages"`
	MaxBytes  int64      `json:"maxBytes"` // of one answer, after decompression

	// MaxTotalBytes is that of a whole fetch, all answers together; 0 is the
	// default, so that definitions from before it stay what they are.
	MaxTotalBytes int64 `json:"maxTotalBytes,omitempty"`
}

// Type is what a column holds.
type Type string

// The types.
const (
	Text      Type = "text"
	Integer   Type = "integer"
	Number    Type = "number"
	Boolean   Type = "boolean"
	Timestamp Type = "timestamp"
	Date      Type = "date"
	Object    Type = "json"
)

// Field is one column: where its value is found in a row, and its type.
type Field struct {
	Source   string `json:"source" definition:"required"` // dotted
	Target   string `json:"target" definition:"required"`
	Type     Type   `json:"type" definition:"oneof=text|integer|number|boolean|timestamp|date|json"`
	Required bool   `json:"required,omitempty"` // a row without it is rejected
}

// ErrorWhen finds answers of status 200 that say that they failed: there is
// something at the path, or what is there equals the value.
type ErrorWhen struct {
	Path   string          `json:"path" definition:"required"`
	Equals json.RawMessage `json:"equals,omitempty"`
}

// Mode is what happens to rows that are there already.
type Mode string

// The modes.
const (
	Append  Mode = "append"  // they stay as they are
	Upsert  Mode = "upsert"  // they are brought up to date
	Replace Mode = "replace" // the table holds what the last whole fetch held
)

// Write says where rows go.
type Write struct {
	Mode       Mode     `json:"mode" definition:"oneof=append|upsert|replace"`
	Key        []string `json:"key,omitempty"`
	Connection string   `json:"connection,omitempty"` // another database; empty is Pawl's own
}

// OffsetPagination counts pages or rows.
type OffsetPagination struct {
	PageParam   string `json:"pageParam,omitempty"`   // counts pages from FirstPage
	OffsetParam string `json:"offsetParam,omitempty"` // counts rows from 0
	LimitParam  string `json:"limitParam,omitempty"`
	Limit       int    `json:"limit"`
	FirstPage   int    `json:"firstPage"`
	HasMorePath string `json:"hasMorePath,omitempty"`
	TotalPath   string `json:"totalPath,omitempty"` // of the rows in all
}

// CursorPagination follows a cursor from page to page.
type CursorPagination struct {
	CursorParam    string `json:"cursorParam" definition:"required"`
	NextCursorPath string `json:"nextCursorPath" definition:"required"`
	LimitParam     string `json:"limitParam,omitempty"`
	Limit          int    `json:"limit,omitempty"`
}

// LinkPagination follows the link to the next page, from a header or from the
// answer.
type LinkPagination struct {
	Header   string `json:"header,omitempty"`
	NextPath string `json:"nextPath,omitempty"`
}

// Incremental asks only for what is new since the greatest value seen.
type Incremental struct {
	Param      string `json:"param" definition:"required"`
	CursorPath string `json:"cursorPath" definition:"required"` // within a row
	Initial    string `json:"initial,omitempty"`
	Lookback   string `json:"lookback,omitempty"` // how far to go back each time
}

// Publish turns new and changed rows into events of a workflow.
type Publish struct {
	Workflow string `json:"workflow" definition:"required"`
	Topic    string `json:"topic" definition:"required"`
}

// TotalBytes is how much a whole fetch may read.
func (r Response) TotalBytes() int64 { return or(r.MaxTotalBytes, defaultTotal) }
