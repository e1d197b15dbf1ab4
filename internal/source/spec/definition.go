// Package spec reads and checks the definitions of sources: what is fetched,
// how its rows are read, where they go and when. It is pure.
package spec

import (
	"cmp"
	"encoding/json"

	"github.com/pawlrun/pawl/client"
)

// Definition says what a source fetches and where it goes. Its JSON, once
// normalised, is its stored form: equal meaning has equal bytes.
type Definition struct {
	Name             string            `json:"name" definition:"required" pattern:"^[a-z0-9][a-z0-9._-]{0,62}$" is:"a name: it has up to 63 small letters, digits, -, _ and ., and begins with a letter or a digit" doc:"Unique among sources."`
	Description      string            `json:"description,omitempty" definition:"max=4096" doc:"For people."`
	URL              string            `json:"url" definition:"required,max=4096" pattern:"^https?://[^\\s]+$" doc:"What is fetched. It holds no credentials: those are in provider files."`
	Table            string            `json:"table" definition:"required" pattern:"^[A-Za-z_][A-Za-z0-9_]{0,62}$" doc:"The table that the rows go to. It is made if it is not there."`
	Schedule         Schedule          `json:"schedule" doc:"When the source is due."`
	Status           string            `json:"status" definition:"default=active" pattern:"^[a-z0-9][a-z0-9._-]{0,62}$" is:"a status: it is one word in small letters, such as active or stopped" doc:"Only active sources run; with any other word a source is skipped."`
	Params           []Pair            `json:"params,omitempty" definition:"max=100" doc:"Parameters of the query, in this order."`
	Headers          []Pair            `json:"headers,omitempty" definition:"max=100" doc:"Headers of each request."`
	Execution        Execution         `json:"execution" doc:"Bounds of a run and its retries."`
	Response         Response          `json:"response" doc:"How rows are read from an answer."`
	Write            Write             `json:"write" doc:"How rows are written."`
	OffsetPagination *OffsetPagination `json:"offsetPagination,omitempty" doc:"Counts pages or rows."`
	CursorPagination *CursorPagination `json:"cursorPagination,omitempty" doc:"Follows a cursor from page to page."`
	LinkPagination   *LinkPagination   `json:"linkPagination,omitempty" doc:"Follows the link to the next page."`
	Incremental      *Incremental      `json:"incremental,omitempty" doc:"Asks only for what is new."`
	Publish          *Publish          `json:"publish,omitempty" doc:"New and changed rows become events."`
	Labels           map[string]string `json:"labels,omitempty" definition:"max=50" doc:"For people and selectors."`
	Keep             map[string]string `json:"keep,omitempty" definition:"max=20" doc:"For how long its own things are kept, such as {runs: 7d, rejects: forever}. Without it, as the server keeps those of all."`

	Expect *client.Expect `json:"expect,omitempty" doc:"What is expected of it: what is not met needs attention."`

	// StatusGiven reports whether the status was written down, so that an
	// update without one can keep what is stored. It is no part of the JSON.
	StatusGiven bool `json:"-"`
}

// Active is the status of a source that runs; any other is skipped.
const Active = "active"

// Pair is a parameter of the query or a header, in the order of the definition.
type Pair struct {
	Name  string `json:"name" definition:"required,max=128"`
	Value string `json:"value" definition:"scalar" doc:"What is sent. {scheduledFor} in it is the time that the fetch stands for, {scheduledFor:date} its date in the zone."`
}

// Schedule says when a source is due: after an interval, or by cron, and what
// limits it.
type Schedule struct {
	Interval string `json:"interval,omitempty" definition:"max=64,min=2" pattern:"^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$" doc:"How long after the last success, such as 30m."`
	Cron     string `json:"cron,omitempty" doc:"Five fields, such as 0 9 * * 1-5."`
	Timezone string `json:"timezone,omitempty" doc:"IANA name; UTC if it is missing."`

	From   string   `json:"from,omitempty" definition:"min=1,max=64" doc:"A date or an instant, in the zone: nothing runs before it. An interval counts from it."`
	Until  string   `json:"until,omitempty" definition:"min=1,max=64" doc:"A date or an instant, in the zone: the last on which it runs."`
	Except []string `json:"except,omitempty" definition:"max=100" doc:"What is left out: dates, ranges of dates such as 2026-12-24/2027-01-01, cron expressions, and calendar:NAME."`
	Jitter string   `json:"jitter,omitempty" definition:"min=2,max=64" pattern:"^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$" doc:"Each fetch starts later than its time by less than this, always by the same."`
	Missed *Missed  `json:"missed,omitempty" doc:"What becomes of times at which it could not run. Without it, one fetch stands for all of them."`
}

// Missed says what becomes of times at which a source could not run.
type Missed struct {
	Policy string `json:"policy" definition:"required,oneof=skip|last|all" doc:"skip: none of them runs; last: the latest one does; all: each does, one after the other."`
	Within string `json:"within,omitempty" definition:"min=2,max=64" pattern:"^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$" doc:"How late a fetch may be. Without it, it may be as late as you like."`
}

// Execution bounds a run and its retries.
type Execution struct {
	Timeout          int    `json:"timeout" definition:"default=300,min=1,max=86400,seconds" doc:"For the whole fetch, over all pages: seconds, or a length of time such as 5m."`
	MaxRetries       int    `json:"maxRetries" definition:"default=5,min=1,max=1000" doc:"Failures in one period; the first attempt counts."`
	RetryResetPeriod string `json:"retryResetPeriod" definition:"default=1d,min=2,max=64" pattern:"^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$" doc:"After this long the failures are forgotten."`
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
	Format    Format     `json:"format" definition:"default=json,oneof=json|ndjson|csv" doc:"What answers are written in."`
	DataPath  string     `json:"dataPath,omitempty" definition:"max=512" doc:"Dotted path to the rows; . or nothing is the root. For json only."`
	Fields    []Field    `json:"fields" definition:"max=500" doc:"The columns of the table."`
	ErrorWhen *ErrorWhen `json:"errorWhen,omitempty" doc:"Finds answers of status 200 that say that they failed."`
	Raw       bool       `json:"raw,omitempty" doc:"Keep each row as it came, in the column _raw."`
	MaxPages  int        `json:"maxPages" definition:"default=10000,min=1,max=1000000" doc:"A fetch with more pages fails."`
	MaxBytes  int64      `json:"maxBytes" definition:"default=1073741824,min=1,max=1099511627776" doc:"Of one answer, after decompression."`

	// MaxTotalBytes is that of a whole fetch, all answers together; 0 is the
	// default, so that definitions from before it stay what they are.
	MaxTotalBytes int64 `json:"maxTotalBytes,omitempty" doc:"Of a whole fetch, after decompression; one that reads more fails."`
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
	Source   string `json:"source" definition:"required,max=512" doc:"Dotted path in a row; for csv, the name of a column."`
	Target   string `json:"target" definition:"required" pattern:"^[A-Za-z_][A-Za-z0-9_]{0,62}$" doc:"The column."`
	Type     Type   `json:"type" definition:"default=text,oneof=text|integer|number|boolean|timestamp|date|json" doc:"What the column holds."`
	Required bool   `json:"required,omitempty" doc:"Rows without it are rejected."`
}

// ErrorWhen finds answers of status 200 that say that they failed: there is
// something at the path, or what is there equals the value.
type ErrorWhen struct {
	Path   string          `json:"path" definition:"required,max=512" doc:"Dotted path in the answer."`
	Equals json.RawMessage `json:"equals,omitempty" doc:"What is there in answers that failed; without it, anything but null, false, 0 and nothing."`
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
	Mode       Mode     `json:"mode" definition:"default=append,oneof=append|upsert|replace" doc:"append: rows that are there stay as they are. upsert: they are brought up to date. replace: the table holds what the last whole fetch held."`
	Key        []string `json:"key,omitempty" doc:"Columns by which a row is known."`
	Connection string   `json:"connection,omitempty" pattern:"^[a-z0-9][a-z0-9._-]{0,62}$" is:"the name of a connection" doc:"The connection to another database; without it, rows go to that of Pawl."`
}

// OffsetPagination counts pages or rows.
type OffsetPagination struct {
	PageParam   string `json:"pageParam,omitempty" definition:"min=1,max=128" doc:"Counts pages from firstPage. One called offset, skip, start or startAt counts rows from 0."`
	OffsetParam string `json:"offsetParam,omitempty" definition:"min=1,max=128" doc:"Counts rows from 0."`
	LimitParam  string `json:"limitParam,omitempty" definition:"min=1,max=128" doc:"Sends the limit."`
	Limit       int    `json:"limit" definition:"default=100,min=1,max=1000000" doc:"Rows a page."`
	FirstPage   int    `json:"firstPage" definition:"default=1,min=0,max=1000000" doc:"Number of the first page."`
	HasMorePath string `json:"hasMorePath,omitempty" definition:"min=1,max=512" doc:"Dotted path to whether there are more pages."`
	TotalPath   string `json:"totalPath,omitempty" definition:"min=1,max=512" doc:"Dotted path to the number of rows in all."`
}

// CursorPagination follows a cursor from page to page.
type CursorPagination struct {
	CursorParam    string `json:"cursorParam" definition:"required,max=128" doc:"Sends the cursor."`
	NextCursorPath string `json:"nextCursorPath" definition:"required,max=512" doc:"Dotted path to the cursor of the next page."`
	LimitParam     string `json:"limitParam,omitempty" definition:"min=1,max=128" doc:"Sends the limit."`
	Limit          int    `json:"limit,omitempty" definition:"min=1,max=1000000" doc:"Rows a page; 100 if there is a limitParam."`
}

// LinkPagination follows the link to the next page, from a header or from the
// answer.
type LinkPagination struct {
	Header   string `json:"header,omitempty" definition:"min=1,max=128" doc:"The header that has the link, such as Link."`
	NextPath string `json:"nextPath,omitempty" definition:"min=1,max=512" doc:"Dotted path to the link."`
}

// Incremental asks only for what is new since the greatest value seen.
type Incremental struct {
	Param      string `json:"param" definition:"required,max=128" doc:"Sends the greatest value seen."`
	CursorPath string `json:"cursorPath" definition:"required,max=512" doc:"Dotted path to the value in a row; for csv, the name of a column."`
	Initial    string `json:"initial,omitempty" definition:"scalar" doc:"What is sent the first time."`
	Lookback   string `json:"lookback,omitempty" definition:"min=2,max=64" pattern:"^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$" doc:"How far to go back each time."`
}

// Publish turns new and changed rows into events of a workflow.
type Publish struct {
	Workflow string `json:"workflow" definition:"required" doc:"The workflow that gets the events."`
	Topic    string `json:"topic" definition:"required" doc:"The topic that they go to."`
}

// TotalBytes is how much a whole fetch may read.
func (r Response) TotalBytes() int64 { return cmp.Or(r.MaxTotalBytes, defaultTotal) }
