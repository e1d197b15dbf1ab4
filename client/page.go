package client

// Page is one page of a list.
type Page[T any] struct {
	Items      []T        `json:"items" nullable:"false" doc:"This page, in the order of the list."`
	NextCursor NullString `json:"nextCursor" doc:"The cursor of the next page; null at the end."`
}
