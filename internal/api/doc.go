// Package api is the HTTP API: JSON in, JSON out, described by an OpenAPI
// document that comes from the same types that serve it.
//
// # The way of a request
//
//	request id, headers, recovery        middleware.go
//	  who asks: bearer token             auth.go       401
//	    which route                      routes.go     404, 405
//	      may they: scope and role       scope.go      403
//	        is the request well-formed   json.go, huma 400, 413, 415, 422
//	          the handler                job.go, token.go, ...
//
// routes.go lists every route with the scope it needs; there is no other place
// that adds one.
//
// # Errors
//
// Every error, wherever it arises, is a Problem (problem.go): a code for
// programs, a sentence and a hint for people, JSON pointers for faults in the
// input, and the request's id. Handlers return *pawl.Error; what carries no
// code is told as "internal error", and only the log has the cause.
//
// # Effects
//
// What a request changes, it changes in one transaction, together with its
// entry in the audit log and its idempotency key. So a key that was answered
// was acted on exactly once, and what a crash cuts off did not happen at all.
package api
