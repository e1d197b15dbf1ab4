package api

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// transform is called by huma on every body before it is written. It turns
// huma's own errors, which arise before a handler is called, into problems.
func (s *surface) transform(ctx huma.Context, _ string, v any) (any, error) {
	model, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	c := callOf(ctx.Context())
	p := s.problemOfHuma(ctx, model)
	if c.broken && model.Status == http.StatusInternalServerError { // see answer.WriteHeader
		p = newProblem(http.StatusBadRequest, codeMalformed, "the body could not be read to its end", "Send all of it, with its length or in well-formed chunks.")
	}
	p.RequestID = c.id
	return p, nil
}

func (s *surface) problemOfHuma(ctx huma.Context, m *huma.ErrorModel) *problem {
	switch m.Status {
	case http.StatusBadRequest:
		if len(m.Errors) > 0 {
			return newProblem(m.Status, codeMalformed, "the body is not valid JSON: "+m.Errors[0].Message, "", client.Fault{Message: m.Errors[0].Message})
		}
		return newProblem(m.Status, codeMalformed, "the request has no body", "")
	case http.StatusRequestTimeout:
		return newProblem(m.Status, codeTimeout, "the body did not come in time", "")
	case http.StatusNotAcceptable:
		return newProblem(m.Status, codeNotAcceptable, "the answer cannot be given in a form that the header Accept allows", "Accept application/json.")
	case http.StatusRequestEntityTooLarge:
		return tooLarge(ctx.Operation().MaxBodyBytes - 1)
	case http.StatusUnsupportedMediaType:
		return newProblem(m.Status, codeUnsupportedMedia, fmt.Sprintf("the body is said to be %q", ctx.Header("Content-Type")), "")
	case http.StatusUnprocessableEntity:
		return s.invalidInput(ctx.Operation(), m.Errors)
	}
	return newProblem(m.Status, string(pawl.CodeInternal), "internal error", "")
}

func tooLarge(most int64) *problem {
	return newProblem(http.StatusRequestEntityTooLarge, string(pawl.CodeTooLarge), fmt.Sprintf("the body has more than %d bytes", most), "")
}

// invalidInput names every fault by its JSON pointer, in order.
func (s *surface) invalidInput(op *huma.Operation, details []*huma.ErrorDetail) *problem {
	var faults []client.Fault
	hint := ""
	for _, d := range details {
		f, h := s.faultOf(op, d)
		faults = append(faults, f)
		hint = cmp.Or(hint, h)
	}
	slices.SortStableFunc(faults, func(a, b client.Fault) int { return cmp.Compare(a.Pointer, b.Pointer) })
	return invalid(hint, faults...)
}

// requiredPrefix begins the message about a field that is missing; its name
// follows.
const requiredPrefix = "is required: "

// setMessages has huma speak of what it finds as the rest of the API does: what
// follows "/runAt ".
func setMessages() {
	for message, words := range map[*string]string{
		&validation.MsgUnexpectedProperty:             "is not a field of this request",
		&validation.MsgExpectedRequiredProperty:       requiredPrefix + "%s",
		&validation.MsgExpectedRFC3339DateTime:        "must be an RFC 3339 date-time",
		&validation.MsgExpectedRFC3986URI:             "must be a URL: %v",
		&validation.MsgExpectedRFC4122UUID:            "must be a UUID: %v",
		&validation.MsgExpectedBoolean:                "must be true or false",
		&validation.MsgExpectedNumber:                 "must be a number",
		&validation.MsgExpectedInteger:                "must be a whole number",
		&validation.MsgExpectedString:                 "must be a string",
		&validation.MsgExpectedArray:                  "must be an array",
		&validation.MsgExpectedObject:                 "must be an object",
		&validation.MsgExpectedOneOf:                  "must be one of %s",
		&validation.MsgExpectedMinimumNumber:          "must be at least %.12g",
		&validation.MsgExpectedExclusiveMinimumNumber: "must be more than %.12g",
		&validation.MsgExpectedMaximumNumber:          "must be at most %.12g",
		&validation.MsgExpectedExclusiveMaximumNumber: "must be less than %.12g",
		&validation.MsgExpectedMinLength:              "must have at least this many characters: %d",
		&validation.MsgExpectedMaxLength:              "must have at most this many characters: %d",
		&validation.MsgExpectedMatchPattern:           "must match %s",
		&validation.MsgExpectedMinItems:               "must have at least this many items: %d",
		&validation.MsgExpectedMaxItems:               "must have at most this many items: %d",
		&validation.MsgExpectedArrayItemsUnique:       "must not name anything twice",
	} {
		*message = words
	}
}

// faultOf gives the place and the words of one fault that huma found, and what
// to do about it if there is more to say.
func (s *surface) faultOf(op *huma.Operation, d *huma.ErrorDetail) (client.Fault, string) {
	pointer := pointerOf(d.Location)
	msg := d.Message
	if at, rest, ok := strings.Cut(msg, " "); ok && strings.HasPrefix(at, "/") && pointer == "" {
		return client.Fault{Pointer: at, Message: rest}, "" // from decode, which knows the place better
	}
	if name, ok := strings.CutPrefix(msg, requiredPrefix); ok {
		return client.Fault{Pointer: pointer + "/" + escapePointer(name), Message: "is required"}, ""
	}
	if list, ok := strings.CutPrefix(msg, "must be one of "); ok {
		return client.Fault{Pointer: pointer, Message: msg}, didYouMean(d.Value, strings.Split(list, ", "))
	}
	switch msg {
	case validation.MsgUnexpectedProperty:
		return client.Fault{Pointer: pointer, Message: msg}, s.fieldsHint(op, pointer)
	case validation.MsgExpectedRFC3339DateTime:
		return client.Fault{Pointer: pointer, Message: msg}, "Use RFC 3339 with an offset, such as 2030-01-31T09:00:00Z."
	case "unknown query parameter": // these three are written where huma reads parameters
		return client.Fault{Pointer: pointer, Message: "is not a parameter of this request"}, parametersHint(op)
	case "invalid integer":
		msg = validation.MsgExpectedInteger
	case "invalid boolean":
		msg = validation.MsgExpectedBoolean
	}
	return client.Fault{Pointer: pointer, Message: msg}, ""
}

// didYouMean names the choice that was probably meant, where a message names all.
func didYouMean(written any, choices []string) string {
	text, _ := written.(string)
	if near := pawl.Nearest(text, choices); near != "" {
		return fmt.Sprintf("Did you mean %q?", near)
	}
	return ""
}

// pointerOf turns huma's body.items[3].tags into /items/3/tags, and
// query.limit into /limit.
func pointerOf(location string) string {
	_, path, found := strings.Cut(location, ".")
	if !found {
		return ""
	}
	path = strings.NewReplacer("[", ".", "]", "").Replace(path)
	var b strings.Builder
	for name := range strings.SplitSeq(path, ".") {
		b.WriteString("/" + escapePointer(name))
	}
	return b.String()
}

func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// fieldsHint names the fields that the body has, for a field that it has not.
func (s *surface) fieldsHint(op *huma.Operation, pointer string) string {
	if op.RequestBody == nil || strings.Count(pointer, "/") != 1 {
		return ""
	}
	content := op.RequestBody.Content["application/json"]
	if content == nil || content.Schema == nil {
		return ""
	}
	schema := content.Schema
	if schema.Ref != "" {
		schema = s.huma.OpenAPI().Components.Schemas.SchemaFromRef(schema.Ref)
	}
	return choicesHint(strings.TrimPrefix(pointer, "/"), "fields", sortedKeys(schema.Properties))
}

func parametersHint(op *huma.Operation) string {
	var names []string
	for _, p := range op.Parameters {
		if p.In == "query" {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return "This request takes no parameters."
	}
	return "The parameters are " + strings.Join(names, ", ") + "."
}
