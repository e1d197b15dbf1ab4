package cli

import (
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// C-79: whoever is asked knows which slots the grant does not cover, and how to
// have them run.
func TestBackfillTellsWhatTheGrantDoesNotCover(t *testing.T) {
	args := []string{"backfill", "morning-poet", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-04T00:00:00Z", "--yes"}
	f := scheduleAPI(t)
	plan := "POST /api/v1/schedules/" + poetID + "/backfill"
	f.answer[plan] = fakeJSON{201, strings.Replace(planJSON("planned", 0, 0, 0), `"total":3,`,
		`"total":3,"before":2,"grantId":null,"uncovered":[{"graphId":"langgraph:poet","slots":3,"code":"grant_scope","message":"the grant does not cover it"}],`, 1)}
	f.run(args...).expect(t, pawl.ExitDone, "Older:        2 slots from before the schedule was made", "Not covered:  3 slots of langgraph:poet would be skipped: the grant does not cover it\n",
		"--grant ID of a grant that covers all: pawl grant create --graph langgraph:poet\n")
	f.answer[plan] = fakeJSON{201, strings.Replace(planJSON("planned", 0, 0, 0), `"total":3,`, `"total":3,"before":0,"grantId":"`+grantID+`","uncovered":[],`, 1)}
	r := f.run(append(args, "--grant", grantID)...)
	r.expect(t, pawl.ExitDone, "Grant:        "+grantID+"\n")
	for _, absent := range []string{"Not covered", "covers all", "Older"} {
		if strings.Contains(r.stderr, absent) {
			t.Errorf("it says %q: %s", absent, r.stderr)
		}
	}
	if sent := f.sent(); !strings.Contains(strings.Join(sent, "\n"), `"grantId":"`+grantID+`"`) {
		t.Errorf("sent %v", sent)
	}
	f.run("backfill", "--cancel", backfillID, "--grant", grantID).expect(t, pawl.ExitUsage, "--cancel stands alone")
}
