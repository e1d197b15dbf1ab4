// Package web is the pages that the binary serves to people with a browser.
//
// # The way of a request
//
//	an address of the API                 site.go      goes to the API untouched
//	headers: policy, no caching           site.go
//	  a write from another site           site.go      403
//	    which page                        routes.go    404
//	      who asks: the cookie            session.go   to the sign-in page
//	        the page's handler            overview.go, workflow.go, run.go, ...
//
// # Pages are a client of the API
//
// A handler reads and changes things by asking the API inside the process
// (inside.go), with the token that the person signed in with. So what a page
// refuses, it refuses with the API's own words, scopes and roles are checked in
// one place, and everything that a person does is in the audit log. What the
// API does not have, such as looking for lanes by their word, is read from the
// store.
//
// # Writes
//
// A form posts to the address of an action and names the page that it is on.
// When the action is done the browser is sent back there and told so; when it
// is refused the same page is shown again with the reason and the status of the
// refusal (change.go). Both work without JavaScript.
//
// # Live
//
// A page opens one stream (live.go). It carries no content, only the news that
// something which the page shows has changed; the part of the page marked live
// then fetches itself and is merged in place. Instances on other nodes are not
// heard, so the stream also ticks.
//
// # Sessions
//
// Sessions are kept in memory and hold on to a token: revoking the token ends
// them at once, and so does a restart of the process. Behind a balancer a
// browser must stay with one node.
//
// # Another kind of lane
//
// Add a laneKind to the list in lane.go, a file with the page's handlers, their
// lines in routes.go and a template. The timeline, the pages of runs and those of
// approvals know the kinds, too.
package web
