// Package access decides who may do what. It is the one place for that: the
// API asks it for every route, the pages ask it what to offer, and the service
// that runs graphs asks it whom to let in. The command line and agents (MCP)
// have no other way than the API.
//
// A scope is a resource and a verb, such as jobs:read. The verbs read, write and
// admin include each other upwards: whoever may write may read. A verb alone is
// for every resource, and * is everything. One verb stands apart:
// graphs:execute, which lets a service run graphs in the name of grants, and
// nothing else.
//
// What a token may do is what its scopes say and its user's role allows:
// viewers read, operators write, admins decide about others, and services are
// made by admins.
//
// A definition acts later, when nobody asks any more. So whoever makes or
// changes one needs, at that moment, the right for what it will do: see
// Definition. Definitions in the folders that the server was started with are
// the operator's own and are not asked.
package access
