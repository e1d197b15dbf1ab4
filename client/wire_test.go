package client

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// wireTypes are all types of the package that cross the wire.
func wireTypes() []any {
	return []any{
		Account{}, AccountPatch{}, Activity{}, AnsweredRun{}, AppliedCalendar{}, AppliedSchedule{}, AppliedSource{}, Approval{}, ApprovalRule{}, ApproveRequest{}, Around{},
		Backfill{}, BackfillCounts{}, BackfillRequest{}, BlockedMethod{}, Calendar{}, CalendarRequest{}, Caps{}, CapsRequest{}, ConfirmRequest{}, Connection{}, ConnectionMethod{}, ConnectionTest{},
		CreatedSchedule{}, CurrentToken{}, DaySpend{}, DeclaredConsumer{}, DeclaredProducer{}, DeclaredSchedule{}, DeletedSchedule{}, DeletedSource{}, Deployment{}, Event{}, Expect{}, Expectation{}, Need{},
		EventInputRequest{}, EventRequest{}, Fault{}, Gate{}, Grant{}, GrantRequest{}, Halt{}, HaltRequest{}, Health{}, Input{}, InputDetail{}, Job{}, JobEvent{}, JobRequest{}, JobsRequest{}, EnqueuedJobs{}, JobFilterRequest{}, JobsChangeRequest{}, ChangedJobs{}, Lane{}, LaneWhy{},
		LogLine{}, NewToken{}, NextInstant{}, NextInstants{}, Output{}, Page[Lane]{}, Partition{}, PartitionCounts{}, Pin{}, Pinned{}, PlannedSlot{}, Problem{}, PublishedEvent{}, Question{}, Readiness{}, ReadinessCanary{}, ReadinessHalt{},
		Receipt{}, Reject{}, RejectRequest{}, Repair{}, Replay{}, ReplayCall{}, ReplayEffects{}, ReplayEvent{}, ReplayRequest{}, Reservation{}, ResetRequest{}, Pause{}, PauseRequest{},
		ResolveRequest{}, Run{}, RunAction{}, RunAnswers{}, RunDetail{}, RunError{}, RunEvent{}, RunMutation{}, RunProgress{}, RunQuestion{}, RunRequested{}, RunSummary{},
		Schedule{}, ScheduleEvent{}, SchedulePage{}, SchedulePatch{}, ScheduleRequest{}, ScheduleRunDetail{}, SchemaPlace{}, ScriptRequest{}, ScriptWarning{}, Slot{},
		SlotError{}, Source{}, SourceEvent{}, SourceField{}, SourceFreshness{}, SourceProgress{}, SourceQuota{}, SourceRetries{}, SourceRun{}, SourceSummary{},
		SourceTotals{}, SourceTrial{}, SourceVersion{}, Timeline{}, TimelineItem{}, Timing{}, TimingPatch{}, Token{}, TokenRequest{}, TrialReject{}, TrialRequest{}, UncoveredSlots{},
		Task{}, TaskRequest{}, TaskRate{}, TaskBatch{}, TaskRateRequest{}, TaskBatchRequest{}, ClaimRequest{}, Claim{}, ClaimedJob{}, CompleteRequest{}, CompletedRequest{}, FailRequest{}, FailedRequest{}, WorkerErrorRequest{}, ExtendRequest{}, LeaseRequest{}, Leases{}, Lease{},
		Hook{}, Delivery{}, AppliedHook{}, Received{}, PlainRun{}, PlainJob{}, Missed{}, Retry{}, PlainOutput{}, Storage{}, StorageTable{}, StorageLane{}, Pruned{}, PrunedItem{}, Node{}, SchemaRange{},
		UpdatedSchedule{}, Warning{}, Workflow{}, WorkflowConfig{}, WorkflowEvent{}, WorkflowHandler{}, WorkflowProducer{}, WorkflowSummary{}, WorkflowVersion{},
	}
}

// C-25, C-87, lesson 57, surface 4: what one side writes the other reads, whole,
// and nothing is there under two names.
func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, zero := range wireTypes() {
		typ := reflect.TypeOf(zero)
		t.Run(typ.Name(), func(t *testing.T) {
			full := reflect.New(typ)
			fill(full.Elem())
			for _, value := range []any{full.Elem().Interface(), zero} {
				raw, err := json.Marshal(value)
				if err != nil {
					t.Fatal(err)
				}
				back := reflect.New(typ)
				d := json.NewDecoder(strings.NewReader(string(raw)))
				d.DisallowUnknownFields()
				if err := d.Decode(back.Interface()); err != nil {
					t.Fatalf("%s: %v", raw, err)
				}
				again, err := json.Marshal(back.Elem().Interface())
				if err != nil || string(again) != string(raw) {
					t.Errorf("%s is read and written as %s, %v", raw, again, err)
				}
				if diff := cmp.Diff(full.Elem().Interface(), back.Elem().Interface()); diff != "" && reflect.DeepEqual(value, full.Elem().Interface()) {
					t.Error(diff)
				}
			}
		})
	}
}

// fill sets every field to something that is not its zero value.
func fill(v reflect.Value) {
	switch at := v.Addr().Interface().(type) {
	case *Instant:
		at.Time = time.Date(2030, 1, 31, 9, 0, 0, 5e6, time.UTC)
		return
	case *json.RawMessage:
		*at = json.RawMessage(`{"a":[1]}`)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		one := reflect.New(v.Type().Elem()).Elem()
		fill(one)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("k"), one)
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Interface:
		v.Set(reflect.ValueOf("any"))
	default:
		panic(fmt.Sprintf("fill %s", v.Type()))
	}
}

// The list above is whole: a type that is not in it would not be tested.
func TestEveryWireTypeIsTested(t *testing.T) {
	var tested []string
	for _, v := range wireTypes() {
		name, _, _ := strings.Cut(reflect.TypeOf(v).Name(), "[")
		tested = append(tested, name)
	}
	packages, err := parser.ParseDir(token.NewFileSet(), ".", func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0) //nolint:staticcheck // one package without build tags
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(packages["client"], func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok {
			return true
		}
		text, _ := spec.Type.(*ast.StructType)
		if text != nil && hasJSON(text) && !slices.Contains(tested, spec.Name.Name) {
			t.Errorf("%s is not in wireTypes", spec.Name.Name)
		}
		return false
	})
}

func hasJSON(s *ast.StructType) bool {
	return slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool { return f.Tag != nil && strings.Contains(f.Tag.Value, `json:"`) })
}

func TestInstantsHaveOneForm(t *testing.T) {
	for text, want := range map[string]string{
		`"2030-01-31T10:00:00.0019+01:00"`: `"2030-01-31T09:00:00.001Z"`,
		`"2030-01-31T09:00:00Z"`:           `"2030-01-31T09:00:00.000Z"`,
		`null`:                             `null`,
	} {
		at := At(time.Now())
		if err := json.Unmarshal([]byte(text), &at); err != nil {
			t.Fatal(err)
		}
		if raw, err := json.Marshal(at); string(raw) != want || err != nil {
			t.Errorf("%s is written as %s, %v", text, raw, err)
		}
	}
	for _, text := range []string{`""`, `"yesterday"`, `7`, `"0"`} {
		if err := json.Unmarshal([]byte(text), new(Instant)); err == nil {
			t.Errorf("%s is an instant", text)
		}
	}
}

func TestEmptyTextIsNull(t *testing.T) {
	if raw, _ := json.Marshal([]NullString{"", "a\"b"}); string(raw) != `[null,"a\"b"]` {
		t.Errorf("%s", raw)
	}
	var back []NullString
	if err := json.Unmarshal([]byte(`[null,"x"]`), &back); err != nil || back[0] != "" || back[1] != "x" {
		t.Errorf("%q %v", back, err)
	}
}
