package simulate

import (
	"github.com/pawlrun/pawl/internal/tool"
)

// checkAllowed holds that what a person must approve leaves only when somebody
// approved exactly this call, or all of its kind.
func (s *shop) checkAllowed(c tool.Call) {
	if c.Method != "sign" {
		return
	}
	w := s.w
	if len(w.rows(`select id||'' from approval_rules where method = 'sign'`)) > 0 {
		return // it may have been in force a moment ago
	}
	for _, m := range w.rows(`select run_id||'', arguments||'' from mutations where idempotency_key = $1 and state = 'in_flight'`, c.Key) {
		used := w.rows(`select arguments||'' from approvals where run_id = $1 and state = 'used'`, m[0])
		for _, a := range used {
			if a[0] == string(c.Args) {
				return
			}
		}
		w.fail("the desk is asked to sign %s, and approved is %v", c.Args, used)
	}
}

// checkOwn holds that a call leaves only while whoever makes it has its run: nobody has
// taken that over. A process that was stopped looks at the clock when it goes on.
func (s *shop) checkOwn(l *life, c tool.Call) {
	if !l.isDead() && len(s.w.rows(`select id||'' from mutations where idempotency_key = $1 and state = 'in_flight'`, c.Key)) == 0 {
		s.w.fail("node %d makes the call %s, and its run was taken over by another one", l.n.index, c.Args)
	}
}

// checkAsked holds that what a run waits for is there: a call of which nobody knows,
// or a question.
func (s *shop) checkAsked() {
	for _, r := range s.w.rows(`select r.id||'', r.status||'' from runs r where r.kind = 'workflow' and r.status = 'paused:reconciliation'
		and not exists (select 1 from mutations m where m.run_id = r.id)`) {
		s.w.fail("run %s is %s, and its call is not in the ledger", r[0], r[1])
	}
}
