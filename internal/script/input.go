package script

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// InputID returns the id that ctx.registerInput gives to an input. A script
// needs it at once, before the host has heard of the input, so it is made of
// what identifies an input, and of nothing else: the same input has the same id
// in every run. scope is the workflow, so that ids of two workflows are apart.
// A host makes the id again from these parts and does not believe the script's.
func InputID(scope, source, kind, id string) string {
	sum := sha256.New()
	for _, part := range []string{scope, source, kind, id} {
		sum.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return "in_" + hex.EncodeToString(sum.Sum(nil)[:16])
}
