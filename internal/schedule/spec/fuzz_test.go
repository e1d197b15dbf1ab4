package spec

import (
	"errors"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// FuzzParse: a file is read as schedules that have their times, or every fault is told
// with its place.
func FuzzParse(f *testing.F) {
	const least = "kind: schedule\nname: a\ngraphId: x:y\n"
	for _, text := range []string{
		least + "cron: '0 9 * * *'\n", least + "interval: 5m\ntimezone: Europe/Berlin\njitter: 1m\n", least + "at: 2030-01-01T00:00:00Z\n", "kind: schedule\nname: a\ncommand: [a]\ncron: [a, b]\n",
		least + "cron: '* * * * *'\nmissed: last\nexcept: [calendar:x, 2026-12-25]\nuntil: 2030-01-01\n", least + "cron: ''\ninterval: ''\n", "kind: shedule\n", least + "input: {a: &b [1, *b]}\n",
		least + "interval: 1h\nexpect: {freshWithin: 2h, doneBy: '07:00', onTime: 99.5}\nkeep: {runs: 3d}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := Parse("x.yaml", text)
		if err != nil {
			if e, ok := errors.AsType[*pawl.Error](err); !ok || e.Code == pawl.CodeInvalid && len(e.Fields) == 0 {
				t.Fatalf("the error %v has no places", err)
			}
			return
		}
		for _, in := range list {
			if in.Name == "" || (in.Cron == "") == (in.Interval == "") && in.At == "" {
				t.Fatalf("%q became %+v", text, in)
			}
		}
	})
}
