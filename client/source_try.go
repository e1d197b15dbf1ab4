package client

// SourceTrial is what a definition would write.
type SourceTrial struct {
	Fields   []SourceField  `json:"fields" nullable:"false" doc:"The columns, in the order of the definition."`
	Rows     []SourceRow    `json:"rows" nullable:"false" doc:"The first rows, by the names of their columns."`
	RowsRead int            `json:"rowsRead" doc:"Rows of the pages that were fetched."`
	Rejects  []TrialReject  `json:"rejects" nullable:"false" doc:"The first rejected rows."`
	Rejected int            `json:"rejected" doc:"Number of rejected rows."`
	Requests []TrialRequest `json:"requests" nullable:"false" doc:"The calls that were made."`
	More     bool           `json:"more" doc:"There are more pages than were fetched."`
	Since    NullString     `json:"since" doc:"The value of the incremental parameter that was sent; null if none was."`
	Mark     NullString     `json:"mark" doc:"How far the incremental cursor would have come; null if there is none."`
}

// SourceField is a column of a source.
type SourceField struct {
	Source   string `json:"source" example:"quote.close" doc:"Where its value is found in a row."`
	Target   string `json:"target" example:"close" doc:"The name of the column."`
	Type     string `json:"type" enum:"text,integer,number,boolean,timestamp,date,json"`
	Required bool   `json:"required"`
}

// TrialReject is a row that did not fit.
type TrialReject struct {
	Row    int    `json:"row" doc:"Of its page, from 1."`
	Reason string `json:"reason" example:"close: \"n/a\" is no number"`
	Raw    string `json:"raw" doc:"As it came, cut if it is long."`
}

// TrialRequest is a call that was made.
type TrialRequest struct {
	URL    string `json:"url" doc:"Without the values of the query."`
	Status int    `json:"status" example:"200"`
	Bytes  int64  `json:"bytes"`
	Rows   int    `json:"rows"`
	Millis int64  `json:"millis" doc:"How long it took."`
}
