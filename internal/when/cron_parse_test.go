package when

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl"
)

// an expression that cannot be used is refused when it is read,
// and the error says where, what, and what is allowed instead.
func TestParseCronRefusesWithFieldTextColumnAndHint(t *testing.T) {
	tests := []struct {
		expression, msg, hint string
	}{
		{"60 * * * *", `minute "60" at column 1 is out of range 0-59`, "minute is 0-59"},
		{"* 24 * * *", `hour "24" at column 3 is out of range`, "hour is 0-23"},
		{"* * 0 * *", `day of month "0" at column 5 is out of range`, "day of month is 1-31"},
		{"* * 32 * *", `day of month "32" at column 5 is out of range`, "1-31"},
		{"* * * 0 *", `month "0" at column 7 is out of range`, "month is 1-12 or JAN-DEC"},
		{"* * * 13 *", `month "13" at column 7 is out of range`, "month is 1-12"},
		{"* * * * 8", `day of week "8" at column 9 is out of range 0-7`, "0 and 7 are Sunday"},
		{"  0   9 * *  1-9", `day of week "9" at column 16 is out of range`, "day of week is 0-7"},
		{"0\t25\t*\t*\t*", `hour "25" at column 3 is out of range`, "hour is 0-23"},
		{"99999999999999999999 * * * *", `at column 1 is out of range`, "minute"},
		{"-5 * * * *", `minute "" at column 1 lacks a value`, "minute"},
		{"5- * * * *", `minute "" at column 3 lacks a value`, "minute"},
		{"1-2-3 * * * *", `minute "2-3" at column 3 is not a value`, "minute"},
		{"a * * * *", `minute "a" at column 1 is not a value`, "minute"},
		{"1.5 * * * *", `minute "1.5" at column 1 is not a value`, "minute"},
		{"MON * * * *", `minute "MON" at column 1 is not a value`, "minute"},
		{"* * * MON *", `month "MON" at column 7 is not a value`, "JAN-DEC"},
		{"* * * * JAN", `day of week "JAN" at column 9 is not a value`, "SUN-SAT"},
		{"* * * * MONDAY", `day of week "MONDAY" at column 9 is not a value`, "SUN-SAT"},
		{"é * * * 9", `minute "é" at column 1 is not a value`, "minute"},
		{"1,,2 * * * *", `minute "" at column 3 is an empty list item`, "minute"},
		{", * * * *", `minute "" at column 1 is an empty list item`, "minute"},
		{"* 1, * * *", `hour "" at column 5 is an empty list item`, "hour"},
		{"*/0 * * * *", `minute "0" at column 3 is not a step of 1 to 60`, "minute"},
		{"*/ * * * *", `minute "" at column 3 is not a step`, "minute"},
		{"*/-1 * * * *", `minute "-1" at column 3 is not a step`, "minute"},
		{"*/90 * * * *", `minute "90" at column 3 is not a step of 1 to 60`, "minute"},
		{"*/2/3 * * * *", `minute "2/3" at column 3 is not a step`, "minute"},
		{"** * * * *", `minute "**" at column 1 is not a value`, "minute"},
		{"*-5 * * * *", `minute "*" at column 1 is not a value`, "minute"},
		{"30-10 * * * *", `minute "30-10" at column 1 runs backwards`, "smaller value first"},
		{"* * * NOV-FEB *", `month "NOV-FEB" at column 7 runs backwards`, "two ranges"},
		{"* * * * FRI-SUN", `day of week "FRI-SUN" at column 9 runs backwards`, "5-7 for Friday to Sunday"},
		{"* * * * 5-0", `day of week "5-0" at column 9 runs backwards`, "write 7"},
		{"* * * * 7-5", `day of week "7-5" at column 9 runs backwards`, "smaller value first"},
		{"* * ? * *", `day of month "?" at column 5 is not a value`, "write * instead"},
		{"* * 15W * *", `day of month "15W" at column 5 is not a value`, "nearest weekday"},
		{"* * LW * *", `day of month "LW" at column 5 is not L or L-1 to L-30`, "L-3"},
		{"* * L-0 * *", `day of month "L-0" at column 5 is not L`, "L-3"},
		{"* * L-31 * *", `day of month "L-31" at column 5 is not L`, "L-3"},
		{"* * L-1-2 * *", `day of month "L-1-2" at column 5 is not L`, "L-3"},
		{"* * LL-1 * *", `day of month "LL-1" at column 5 is not L`, "L-3"},
		{"* * L/2 * *", `day of month "L/2" at column 5 is not L`, "L-3"},
		{"* * 1-L * *", `day of month "L" at column 7 is not a value`, "L-3"},
		{"* * * * L", `day of week "L" at column 9 lacks a weekday`, "5L or FRIL"},
		{"* * * * 8L", `day of week "8" at column 9 is out of range`, "5L"},
		{"* * * * 1-5L", `day of week "1-5" at column 9 is not a value`, "5L"},
		{"* * * * 5L/2", `day of week "5L" at column 9 is not a value`, "5L"},
		{"* * * * 5#0", `day of week "0" at column 11 is not 1 to 5`, "5#2"},
		{"* * * * 5#6", `day of week "6" at column 11 is not 1 to 5`, "5#2"},
		{"* * * * 5#", `day of week "" at column 11 is not 1 to 5`, "5#2"},
		{"* * * * #2", `day of week "" at column 9 lacks a value`, "5#2"},
		{"* * * * 5#2#3", `day of week "2#3" at column 11 is not 1 to 5`, "5#2"},
		{"* * * * 1-5#2", `day of week "1-5" at column 9 is not a value`, "5#2"},
		{"* * 5#2 * *", `day of month "5#2" at column 5 is not a value`, "1-31"},
		{"* L * * *", `hour "L" at column 3 is not a value`, "0-23"},
		{"0 0 31 2 *", `day of month "31" at column 5 never happens in month "2"`, "L for its last day"},
		{"0 0 30 FEB *", `day of month "30" at column 5 never happens in month "FEB"`, "L for its last day"},
		{"0 0 31 4,6,9,11 *", `day of month "31" at column 5 never happens`, "L for its last day"},
		{"0 0 L-30 4 *", `day of month "L-30" at column 5 never happens in month "4"`, "L for its last day"},
		{"0 0 */31 * 5#5", `never happens in month "*" with day of week "5#5"`, "L for its last day"},
		{"", "cron expression is empty", "five fields"},
		{" \t ", "cron expression is empty", "five fields"},
		{"0 9 * *", `has 4 fields and needs 5`, "minute hour day-of-month month day-of-week"},
		{"0", `has 1 field and needs 5`, "minute hour"},
		{"0 0 9 * * *", `has 6 fields and needs 5: the sixth is "*" at column 11`, "seconds and years are not supported"},
		{"0 0 0 1 1 * 2026", `has 7 fields and needs 5`, "seconds and years are not supported"},
		{"* * * *\n*", `has 4 fields and needs 5`, "five fields"},
		{"0\n * * * *", `minute "0\n" at column 1 is not a value`, "minute"},
		{"@reboot", `cron word "@reboot" at column 1 is not supported`, "start of a process"},
		{"@every 5m", `cron word "@every 5m" at column 1 is not supported`, "use an interval instead"},
		{"@fortnightly", `cron word "@fortnightly" at column 1 is not supported`, "@daily"},
		{"@daily 5", `cron word "@daily 5" at column 1 is not supported`, "stand alone"},
		{"@", `cron word "@" at column 1 is not supported`, "@daily"},
		{strings.Repeat("1,", 200) + "1 * * * *", "cron expression is 409 bytes long", "at most 256 bytes"},
	}
	for _, tt := range tests {
		_, err := Cron(tt.expression, time.UTC)
		e, ok := errors.AsType[*pawl.Error](err)
		if !ok || e.Code != pawl.CodeInvalid {
			t.Errorf("%q: error %v, want one of code invalid", tt.expression, err)
			continue
		}
		if !strings.Contains(e.Msg, tt.msg) {
			t.Errorf("%q: message %q lacks %q", tt.expression, e.Msg, tt.msg)
		}
		if !strings.Contains(e.Hint, tt.hint) {
			t.Errorf("%q: hint %q lacks %q", tt.expression, e.Hint, tt.hint)
		}
	}
}

// different spellings of one schedule have the same instants.
func TestParseCronReadsSpellingsOfTheSameSchedule(t *testing.T) {
	after := time.Date(2026, 1, 30, 12, 34, 56, 0, time.UTC)
	for _, same := range [][]string{
		{"0 9 * * 1-5", "0 9 * * MON-FRI", "0 9 * * mon-Fri", " 00 \t09 * * 1,2,3,4,5 ", "0 9 * * 5,4,3,1-3"},
		{"0 0 * * 0", "0 0 * * 7", "0 0 * * SUN", "@weekly", "@WEEKLY", "0 0 * * 7-7", "0 0 * * 7/2", "0 0 * * */7"},
		{"0 0 * * 5-7", "0 0 * * FRI,SAT,SUN", "0 0 * * 0,5,6"},
		{"0 0 1 1 *", "@yearly", "@annually", "0 0 1 JAN *"},
		{"0 0 1 * *", "@monthly", "0 0 */31 * *"},
		{"0 0 * * *", "@daily", "@midnight", "0 0 */1 * *", "0 0 * * 0-7", "0 0 1-31 * *", "0 0 *,5 * *"},
		{"0 * * * *", "@hourly", "*/60 * * * *", "0 0-23 * * *"},
		{"*/15 * * * *", "0,15,30,45 * * * *", "0/15 * * * *", "0-59/15 * * * *"},
		{"5,20,35,50 * * * *", "5/15 * * * *", "5-59/15 * * * *"},
		{"0 0 * * 1,3,5", "0 0 * * 1/2", "0 0 * * MON/2", "0 0 * * 1-6/2"},
		{"0 0 L * *", "0 0 l * *", "0 0 L,L * *"},
		{"0 0 L-1 * *", "0 0 l-01 * *"},
		{"0 0 * * 5L", "0 0 * * FRIL", "0 0 * * fril"},
		{"0 0 * * 0L", "0 0 * * 7L", "0 0 * * SUNL"},
		{"0 0 * * 5#2", "0 0 * * FRI#2", "0 0 * * fri#2"},
		{"0 0 * * 0#1", "0 0 * * 7#1"},
		{"0 0 29 2 *", "0 0 29-31 2 *", "0 0 29,30 FEB *"},
	} {
		want := mustCron(t, same[0], "").NextN(after, 40)
		for _, other := range same[1:] {
			got := mustCron(t, other, "").NextN(after, 40)
			if !equalTimes(got, want) {
				t.Errorf("%q differs from %q", other, same[0])
			}
		}
	}
}

func TestCronKeepsTheExpressionAsItWasWritten(t *testing.T) {
	for expression, want := range map[string]string{
		" 0  9 * * MON-fri\t": "0  9 * * MON-fri",
		"@Daily":              "@Daily",
	} {
		if got := mustCron(t, expression, "").Value(); got != want {
			t.Errorf("Value of %q = %q, want %q", expression, got, want)
		}
	}
}

// Whatever is given, reading it does not panic, and what is accepted has an
// instant after any other, strictly later and on a whole minute (C-74).
func FuzzParseCron(f *testing.F) {
	for _, seed := range []string{
		"* * * * *", "*/15 1-3 * * *", "0 0 L * *", "0 0 L-3 2 5L", "0 0 29 2 */7", "@daily", "@every 5m", "5/7 3/2 1/9 1/5 1/3",
		"0 9 * * FRI#2,1-5", "0 0 31 2 *", "0 0 9 * * *", "*/15 2 * 3 7L", ",,,, - / # L", "\x00 \xff * * *", "١ * * * *",
	} {
		f.Add(seed, int64(1774745580))
	}
	f.Add("0 0 29 2 */7", int64(4233600000))
	zones := []string{"UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago"}
	f.Fuzz(func(t *testing.T, expression string, unix int64) {
		after := time.Unix(unix%253000000000, 0) // years -6047 to 9987
		for _, name := range zones {
			s, err := Parse(KindCron, expression, name)
			if err != nil {
				if pawl.ErrorCode(err) != pawl.CodeInvalid {
					t.Fatalf("%q: %v", expression, err)
				}
				continue
			}
			next, ok := s.Next(after)
			if !ok && after.Year() < 9900 {
				t.Fatalf("%q in %s has nothing after %v", expression, name, after)
			}
			if ok && (!next.After(after) || next.Unix()%60 != 0 || next.Nanosecond() != 0) {
				t.Fatalf("%q in %s: %v after %v", expression, name, next, after)
			}
			if s.Describe() == "" {
				t.Fatalf("%q is described by nothing", expression)
			}
		}
	})
}

func mustCron(t interface {
	Helper()
	Fatalf(string, ...any)
}, expression, zone string) Schedule {
	t.Helper()
	s, err := Parse(KindCron, expression, zone)
	if err != nil {
		t.Fatalf("parse %q: %v", expression, err)
	}
	return s
}

func equalTimes(a, b []time.Time) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Equal(b[i]) {
			return false
		}
	}
	return true
}
