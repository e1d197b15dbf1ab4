package api

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

const schemasPrefix = "#/components/schemas/"

// newSchemas describes the types of package client, which knows nothing of
// OpenAPI.
func newSchemas() huma.Registry {
	schemas := huma.NewMapRegistry(schemasPrefix, nameSchema)
	schemas.RegisterTypeAlias(reflect.TypeFor[client.Instant](), reflect.TypeFor[instantSchema]())
	schemas.RegisterTypeAlias(reflect.TypeFor[client.NullString](), reflect.TypeFor[*string]())
	schemas.RegisterTypeAlias(reflect.TypeFor[pawl.USD](), reflect.TypeFor[float64]())
	schemas.RegisterTypeAlias(reflect.TypeFor[client.Optional[string]](), reflect.TypeFor[string]())
	schemas.RegisterTypeAlias(reflect.TypeFor[client.Optional[pawl.USD]](), reflect.TypeFor[float64]())
	schemas.RegisterTypeAlias(reflect.TypeFor[client.Cron](), reflect.TypeFor[cronSchema]())
	schemas.RegisterTypeAlias(reflect.TypeFor[client.ExpectRows](), reflect.TypeFor[rowsSchema]())
	return schemas
}

// rowsSchema describes client.ExpectRows.
type rowsSchema struct{}

// Schema is a number or a word.
func (rowsSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeInteger}, {Type: huma.TypeString}}, Examples: []any{"usual"}}
}

// cronSchema describes client.Cron.
type cronSchema struct{}

// Schema is a text or a list of texts.
func (cronSchema) Schema(huma.Registry) *huma.Schema {
	text := &huma.Schema{Type: huma.TypeString}
	return &huma.Schema{OneOf: []*huma.Schema{text, {Type: huma.TypeArray, Items: text}}, Examples: []any{"0 9 * * *"}}
}

// instantSchema describes client.Instant.
type instantSchema struct{}

// Schema is a time in the one form of answers.
func (instantSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Examples: []any{"2030-01-31T09:00:00.000Z"}}
}

// nameSchema is what the document calls a type: by its name in Go, but for what
// has a version in the contract.
func nameSchema(t reflect.Type, hint string) string {
	name, page := strings.CutPrefix(huma.DefaultSchemaNamer(t, hint), "Page")
	if versioned := versionedSchemas()[name]; versioned != "" {
		name = versioned
	}
	if page {
		name = "Page" + name
	}
	return name
}

// versionedSchemas are the names of the versioned contracts (C-25), by type.
func versionedSchemas() map[string]string {
	return map[string]string{
		"Schedule":        "ScheduleV1",
		"ScheduleRequest": "SchedulesCreateV1Input",
		"CreatedSchedule": "SchedulesCreateV1Output",
		"SchedulePage":    "SchedulesListV1Output",
		"SchedulePatch":   "SchedulesUpdateV1Input",
		"UpdatedSchedule": "SchedulesUpdateV1Output",
		"DeletedSchedule": "SchedulesDeleteV1Output",
		"AppliedSchedule": "SchedulesApplyV1Output",
		"NextInstants":    "SchedulesNextV1Output",
		"NextInstant":     "NextV1",
		"Slot":            "ScheduleRunV1",
		"Grant":           "GrantV1",
		"Caps":            "CapsV1",
		"CapsRequest":     "CapsV1Input",
		"GrantRequest":    "GrantsCreateV1Input",
		"Backfill":        "BackfillV1",
		"PlannedSlot":     "PlannedSlotV1",
		"UncoveredSlots":  "UncoveredV1",
		"BackfillRequest": "BackfillsCreateV1Input",
		"ConfirmRequest":  "BackfillsConfirmV1Input",
		"Account":         "BillingAccountV1",
		"AccountPatch":    "BillingAccountsUpdateV1Input",
		"DaySpend":        "SpendV1",
		"Receipt":         "ReceiptV1",
	}
}

// markNullable marks the objects of an answer that can be null, which are
// pointers that are always written. Huma does so for plain values only.
func markNullable(s *huma.Schema, t reflect.Type) {
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		property := s.Properties[name]
		if f.Type.Kind() != reflect.Pointer || strings.Contains(options, "omit") || property == nil || property.Ref == "" {
			continue
		}
		s.Properties[name] = &huma.Schema{
			Description: property.Description,
			AnyOf:       []*huma.Schema{{Ref: property.Ref}, {Type: "null"}},
		}
	}
}
