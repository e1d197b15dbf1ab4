package script

import (
	_ "embed" // prelude.js and pawl.d.ts
	"strings"
)

//go:embed prelude.js
var preludeSource string

//go:embed pawl.d.ts
var typesSource string

// Types returns pawl.d.ts, the types of the module "pawl" for editors.
func Types() string { return typesSource }

// The engine gives all code the same file name, so programs begin on a line
// that the prelude does not reach: a frame above lineShift is the script's.
const lineShift = 1000

// shifted moves a program down to where its lines begin.
func shifted(javascript string) string {
	return strings.Repeat("\n", lineShift) + javascript
}
