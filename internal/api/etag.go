package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/client"
)

// MatchHeader describes the headers by which a change is made only if what it
// changes is still as the caller saw it (exported, like all types that inputs
// embed, because huma sees no others).
type MatchHeader struct {
	IfMatch     string `header:"If-Match" maxLength:"1024" doc:"Change it only if its ETag is this one; refused with 412 if it was changed in the meantime. Without it, the change is unconditional." example:"\"3f1a2b4c\""`
	IfNoneMatch string `header:"If-None-Match" maxLength:"1024" doc:"With *, create it only if it is not there yet; refused with 412 if it is."`
}

// codePrecondition is the code of a change of what is not as the caller saw it.
const codePrecondition = "precondition_failed" // 412

// tagOf is the ETag of a version; empty if there is none.
func tagOf(version string) string {
	if version == "" {
		return ""
	}
	return `"` + version + `"`
}

// scheduleTag is the ETag of a schedule: of what people define, not of when it
// runs.
func scheduleTag(s *client.Schedule) string {
	if s.ID == "" {
		return ""
	}
	raw, _ := json.Marshal([]any{s.Name, s.ExecutionGrantID, s.GraphID, s.Input, s.Cron, s.Timezone, s.ConcurrencyPolicy, s.Enabled, s.Labels, s.Timing, s.Run, s.Idempotent, s.Missed, s.Retry, s.Keep, s.Expect, s.Needs}) // of types that can be JSON
	sum := sha256.Sum256(raw)
	return tagOf(hex.EncodeToString(sum[:16]))
}

// expect refuses a change unless what it changes has the tag that the caller
// named. what names it for people, and tag is that of how it is now, empty if it
// is not there.
func (h MatchHeader) expect(what, tag string) error {
	switch {
	case h.IfNoneMatch != "" && h.IfNoneMatch != "*":
		return invalid("Send If-None-Match: *, or leave it out.", client.Fault{Pointer: "/If-None-Match", Message: "must be *"})
	case h.IfNoneMatch != "" && tag != "":
		return precondition(what+" is there already", "Read it, and send its ETag in If-Match to change it.")
	case h.IfMatch == "" || h.IfMatch == "*" && tag != "" || slices.Contains(tagsIn(h.IfMatch), tag) && tag != "":
		return nil
	case tag == "":
		return precondition(what+" is not there (any more)", "Leave If-Match out to create it.")
	}
	return precondition(what+" was changed since you read it", "Read it again, compare, and send the ETag that it has now.")
}

func precondition(detail, hint string) error {
	return newProblem(http.StatusPreconditionFailed, codePrecondition, detail, hint)
}

// tagsIn are the tags of a header. Weak ones never match for a change.
func tagsIn(header string) (tags []string) {
	for part := range strings.SplitSeq(header, ",") {
		tags = append(tags, strings.TrimSpace(part))
	}
	return tags
}

// expectVersion is expect for things whose versions have a name.
func (h MatchHeader) expectVersion(kind, name string) func(version string) error {
	return func(version string) error { return h.expect(fmt.Sprintf("the %s %q", kind, name), tagOf(version)) }
}
