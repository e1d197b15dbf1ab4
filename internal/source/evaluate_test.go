package source

import (
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"
)

// stored is everything that evaluating could have changed.
func (k *kit) stored() (out []string) {
	k.t.Helper()
	for _, sql := range []string{
		`select cast(retry_count as text) || ' ' || cast(crash_count as text) || ' ' || cast(period_start as text) || ' ' || coalesce(cast(next_retry_at as text), '') || ' ' || cast(updated_at as text) from retries order by lane`,
		`select source_id || ' ' || coalesce(cast(last_success_at as text), '') || ' ' || coalesce(cast(last_attempt_at as text), '') || ' ' || cast(last_failed as text) || ' ' || cast(updated_at as text) from source_state`,
		`select id || ' ' || status || ' ' || cast(updated_at as text) from runs order by id`,
	} {
		out = append(out, k.column(sql)...)
	}
	return out
}

// B-19, B-40, B-45: evaluating has no effect, so it may happen at any instant
// and as often as anybody likes; a budget whose period is over is seen as new
// without anybody writing it down.
func TestEvaluatingChangesNothing(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("s", "/pages", byPage+"execution: {maxRetries: 1, retryResetPeriod: 1d}\n"))
		k.api.on(func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "down", http.StatusBadGateway)
			return true
		})
		yesterday := time.Now().Add(-25 * time.Hour).UnixMilli()
		for _, c := range []struct {
			name    string
			prepare func()
		}{
			{"never ran", func() {}},
			{"used up", func() { k.work(src) }},
			{"asked for", func() { k.change(`update source_state set requested_at = 1`) }},
			{"a period that is over", func() { k.change(`update retries set period_start = $1`, yesterday) }},
		} {
			c.prepare()
			name := c.name
			before, asked, armed := k.stored(), k.api.asked(), len(k.armed.jobs)
			v := k.look("s")
			first := v.evaluate()
			for range 3 {
				if again := v.evaluate(); !reflect.DeepEqual(again, first) {
					t.Errorf("%s: the same view was judged %+v, then %+v", name, first, again)
				}
				if again := k.look("s").evaluate(); again.open != first.open || len(again.gates) != len(first.gates) {
					t.Errorf("%s: looking again says %+v, before %+v", name, again, first)
				}
			}
			if after := k.stored(); !slices.Equal(after, before) || k.api.asked() != asked || len(k.armed.jobs) != armed {
				t.Errorf("%s: evaluating changed\n%v to\n%v", name, before, after)
			}
		}
		if v := k.look("s"); v.retry.Count != 0 || !v.evaluate().open {
			t.Errorf("a period that is over still counts %d failures: %+v", v.retry.Count, v.evaluate())
		}
	})
}
