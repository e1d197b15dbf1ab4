package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// StoragePath is where a server tells how large its database is, and PrunePath
// where it is asked to remove what is older than it is kept.
const (
	StoragePath = "/api/v1/storage"
	PrunePath   = "/api/v1/prune"
)

// Storage is how large a database is.
type Storage struct {
	Database    string            `json:"database" enum:"sqlite,postgres"`
	TotalBytes  int64             `json:"totalBytes"`
	FreeBytes   int64             `json:"freeBytes" doc:"Of the total, what is empty and is used again; 0 if that is not known."`
	BytesPerDay int64             `json:"bytesPerDay" doc:"What all tables grow by, measured over up to a week; 0 in the first hour."`
	RoomBytes   *int64            `json:"roomBytes" doc:"What the disk has left for a SQLite file; null where that is not known."`
	FullAt      Instant           `json:"fullAt" doc:"When the disk will be full at this rate; null if it is not known, or if nothing grows."`
	Keep        map[string]string `json:"keep" example:"{\"runs\":\"90d\"}" doc:"For how long each kind is kept, unless a definition says otherwise."`
	Tables      []StorageTable    `json:"tables" doc:"The largest first."`
	Lanes       []StorageLane     `json:"lanes" doc:"The largest first; of large tables by samples."`
}

// StorageTable is how large a table is, with its indexes.
type StorageTable struct {
	Name        string `json:"name" example:"runs"`
	Rows        int64  `json:"rows"`
	Bytes       int64  `json:"bytes"`
	BytesPerDay int64  `json:"bytesPerDay"`
	Estimated   bool   `json:"estimated" doc:"Whether the rows were not counted."`
}

// StorageLane is about how much belongs to a lane.
type StorageLane struct {
	Kind  string `json:"kind" enum:"workflow,source,schedule"`
	Name  string `json:"name"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`

	Keep map[string]string `json:"keep,omitempty" doc:"For how long its own things are kept, where its definition says so."`
}

// Pruned is what was removed, or would be.
type Pruned struct {
	DryRun bool         `json:"dryRun"`
	Rows   int64        `json:"rows"`
	Bytes  int64        `json:"bytes" doc:"About; of content."`
	More   bool         `json:"more" doc:"Whether time ran out: ask again with resume=true."`
	Items  []PrunedItem `json:"items" doc:"By kind and lane."`
}

// PrunedItem is what was removed, or would be, of one kind and lane.
type PrunedItem struct {
	Kind     string  `json:"kind" example:"runs"`
	LaneKind string  `json:"laneKind,omitempty" doc:"Absent for what belongs to no lane."`
	Lane     string  `json:"lane,omitempty" doc:"The name of the lane."`
	Rows     int64   `json:"rows"`
	Bytes    int64   `json:"bytes"`
	Oldest   Instant `json:"oldest"`
}

// Storage reads how large the database is.
func (c *Client) Storage(ctx context.Context) (Storage, error) {
	return decode[Storage](c, "sizes")(c.Get(ctx, StoragePath))
}

// Prune removes what is older than it is kept, or tells what would be removed. If
// there is more than the server had time for, resume goes on.
func (c *Client) Prune(ctx context.Context, dryRun, resume bool) (Pruned, error) {
	query := url.Values{"dryRun": {strconv.FormatBool(dryRun)}, "resume": {strconv.FormatBool(resume)}}
	return decode[Pruned](c, "an answer to prune")(c.call(ctx, http.MethodPost, PrunePath, query, nil))
}
