package when

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl"
)

// maxCronText bounds the expression in bytes, and with it the work of reading
// one that is hostile.
const maxCronText = 256

const fiveFieldsHint = "write five fields: minute hour day-of-month month day-of-week, such as 0 9 * * 1-5"

// token is a piece of an expression and its place in it.
type token struct {
	text string
	at   int // byte offset in the expression
}

// parseCron reads an expression. Every error is a *pawl.Error of CodeInvalid
// that names the field, the text and its column.
func parseCron(expression string) (*cronExpr, error) {
	if len(expression) > maxCronText {
		return nil, cronError(fmt.Sprintf("cron expression is %d bytes long", len(expression)),
			fmt.Sprintf("an expression has at most %d bytes", maxCronText))
	}
	text := strings.Trim(expression, " \t")
	if text == "" {
		return nil, cronError("cron expression is empty", fiveFieldsHint)
	}
	if text[0] == '@' {
		fields, err := expandMacro(text)
		if err != nil {
			return nil, err
		}
		e, err := parseFields(fields)
		if err != nil {
			return nil, err
		}
		e.text = text
		return e, nil
	}
	e, err := parseFields(expression)
	if err != nil {
		return nil, err
	}
	e.text = text
	return e, nil
}

// expandMacro returns the five fields that a word such as @daily stands for.
func expandMacro(word string) (string, error) {
	switch strings.ToLower(word) {
	case "@yearly", "@annually":
		return "0 0 1 1 *", nil
	case "@monthly":
		return "0 0 1 * *", nil
	case "@weekly":
		return "0 0 * * 0", nil
	case "@daily", "@midnight":
		return "0 0 * * *", nil
	case "@hourly":
		return "0 * * * *", nil
	}
	name, _, _ := strings.Cut(strings.ToLower(word), " ")
	hint := "the words are @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly, and they stand alone"
	switch name {
	case "@every":
		hint = `use an interval instead, such as interval: "5m"`
	case "@reboot":
		hint = "a schedule is bound to the clock and not to the start of a process; " + hint
	}
	return "", cronError(fmt.Sprintf("cron word %q at column 1 is not supported", word), hint)
}

// parseFields reads the five fields of an expression that has no macro.
func parseFields(expression string) (*cronExpr, error) {
	tokens := splitFields(expression)
	rules := cronFields()
	if len(tokens) != len(rules) {
		return nil, fieldCountError(expression, tokens)
	}
	e := &cronExpr{}
	for i, rule := range rules {
		p := fieldParser{expression: expression, rule: rule, out: e}
		if err := p.parse(tokens[i]); err != nil {
			return nil, err
		}
	}
	e.domStar = tokens[2].text[0] == '*'
	e.dowStar = tokens[4].text[0] == '*'
	e.wildcard = tokens[0].text[0] == '*' || tokens[1].text[0] == '*'
	if !e.hasDay() {
		return nil, noSuchDayError(expression, tokens)
	}
	return e, nil
}

// splitFields cuts an expression at spaces and tabs. Any other kind of blank
// stays in its field and is refused there.
func splitFields(expression string) []token {
	var tokens []token
	start := -1
	for i := 0; i <= len(expression); i++ {
		blank := i == len(expression) || expression[i] == ' ' || expression[i] == '\t'
		switch {
		case blank && start >= 0:
			tokens = append(tokens, token{expression[start:i], start})
			start = -1
		case !blank && start < 0:
			start = i
		}
	}
	return tokens
}

// splitList cuts a field at commas. Empty items are kept, to be refused.
func splitList(field token) []token {
	var items []token
	at := field.at
	for text := range strings.SplitSeq(field.text, ",") {
		items = append(items, token{text, at})
		at += len(text) + 1
	}
	return items
}

func fieldCountError(expression string, tokens []token) error {
	msg := fmt.Sprintf("cron %q has %d fields and needs 5", expression, len(tokens))
	hint := fiveFieldsHint
	switch {
	case len(tokens) == 1:
		msg = fmt.Sprintf("cron %q has 1 field and needs 5", expression)
	case len(tokens) > 5:
		extra := tokens[5]
		msg += fmt.Sprintf(": the sixth is %q at column %d", extra.text, column(expression, extra.at))
		hint = "seconds and years are not supported; " + hint
	}
	return cronError(msg, hint)
}

func noSuchDayError(expression string, tokens []token) error {
	dom, month, dow := tokens[2], tokens[3], tokens[4]
	msg := fmt.Sprintf("day of month %q at column %d never happens in month %q",
		dom.text, column(expression, dom.at), month.text)
	if dow.text != "*" {
		msg += fmt.Sprintf(" with day of week %q", dow.text)
	}
	return cronError(msg, "choose a day that the month has in at least some years, or L for its last day")
}

// column counts characters from 1, as an editor does.
func column(expression string, at int) int {
	return utf8.RuneCountInString(expression[:at]) + 1
}

func cronError(msg, hint string) error {
	return &pawl.Error{Code: pawl.CodeInvalid, Op: "parse cron", Msg: msg, Hint: hint}
}
