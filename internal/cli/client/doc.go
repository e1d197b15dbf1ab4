// Package client speaks the HTTP API of a Pawl server on behalf of commands:
// requests with a bearer token, lists page by page, problems as *pawl.Error,
// and the stream of events with reconnection.
package client
