package web

import (
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// may reports whether a token allows the verb for the resource. The API decides
// what is done, by the same rules; this keeps pages from offering what it would
// refuse, and guards the few reads that it does not have.
func may(t *userstore.Token, resource, verb string) bool { return access.Allowed(t, resource+":"+verb) }
