package contract

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Lesson 57, surface 4: what the server tells of slots, grants, backfills and
// money the command line reads, whole.
func TestAnswersSurviveTheWire(t *testing.T) {
	at := Instant{time.Date(2030, 1, 31, 9, 0, 0, 5e6, time.UTC)}
	usd, runs, fired := Micro(12345), int64(3), Disposition("fired")
	caps := CapsV1{USDPerDay: &usd, USDPerRun: &usd, RunsPerDay: &runs}
	schedule := aSchedule()
	for _, value := range []any{
		SchedulesApplyV1Output{What: "updated", DryRun: true, Schedule: schedule, Previous: &schedule},
		SchedulesNextV1Output{Schedule: "w", Enabled: true, Items: []NextV1{{At: at, Local: "l", ClockChange: "c"}}},
		ScheduleRunV1{
			ID: "i", ScheduleID: "s", RunID: new("r"), ScheduledFor: at, StartedAt: &at, CompletedAt: &at, Status: "success", Disposition: &fired, AttemptCount: 2,
			TraceID: new("t"), Error: &SlotErrorV1{Timeout, "m"}, Note: new("n"), CostUSD: usd, Trigger: "manual", BackfillID: new("b"), Revision: 4, CoalescedInto: &at,
		},
		GrantV1{
			ID: "g", UserID: "u", BillingAccountID: "a", Scopes: []string{"s"}, Caps: caps, WildcardConsentAt: &at, Automatic: true, ExpiresAt: &at, RevokedAt: &at, CreatedAt: at,
		},
		GrantsCreateV1Input{Scopes: []string{"s"}, Graphs: []string{"a:b"}, BillingAccountID: "a", Caps: CapsV1Input(caps), ExpiresAt: &at, WildcardConsent: true},
		BackfillV1{
			ID: "b", ScheduleID: "s", From: at, To: at, Hash: "h", State: "done", PerMinute: 1, EstimateUSD: &usd, Total: 2, Skipped: 3, Begun: 4,
			Counts: BackfillCounts{1, 2, 3, 4, 5}, CreatedBy: "c", CreatedAt: at, ConfirmedBy: new("d"), ConfirmedAt: &at, UpdatedAt: at,
			Before: 1, GrantID: new("g"), Uncovered: []UncoveredV1{{GraphID: "a:b", Slots: 1, Code: GrantRevoked, Message: "m"}},
			Slots: []PlannedSlotV1{{At: at, Revision: 1, GraphID: "a:b", Was: "fired"}},
		},
		BackfillsCreateV1Input{From: at, To: at, PerMinute: 5, GrantID: "g"},
		BackfillsConfirmV1Input{Hash: "h"},
		BillingAccountV1{ID: "a", OwnerUserID: "u", Name: "n", BalanceUSD: &usd, KeyRef: new("${K}"), ReservedUSD: usd, Days: []SpendV1{{"2030-01-31", usd, 2}}, CreatedAt: at},
		ReceiptV1{
			ID: "r", BillingAccountID: "a", GrantID: new("g"), ScheduleID: new("s"), RunID: "r", Attempt: 1, SourceSystem: "pawl", SourceReference: "r/1/a", Executor: "http",
			Model: new("m"), InputTokens: 1, OutputTokens: 2, AmountUSD: usd, CreatedAt: at,
		},
	} {
		t.Run(fmt.Sprintf("%T", value), func(t *testing.T) {
			everyFieldIsSet(t, reflect.ValueOf(value))
			raw, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			back := reflect.New(reflect.TypeOf(value))
			d := json.NewDecoder(strings.NewReader(string(raw)))
			d.DisallowUnknownFields()
			if err := d.Decode(back.Interface()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(value, back.Elem().Interface()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
