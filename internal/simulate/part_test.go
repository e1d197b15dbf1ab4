package simulate

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// partOf is the partition of an event.
func partOf(id string) string {
	return []string{"red", "green", "blue"}[hashOf(id)%3]
}

func payloadOf(id string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"id":%q,"of":%q}`, id, partOf(id)))
}

// checkPlaces holds that no more partitions are at work than the consumer allows.
func (s *shop) checkPlaces() {
	if !s.w.plan.parts {
		return
	}
	if n := len(s.w.rows(`select id||'' from partitions where place = 2`)); n > 2 {
		s.w.fail("%d partitions have a place, and 2 may", n)
	}
}

// checkApart holds that a partition waits for itself alone: one that has events, and
// about which nobody is asked, is at work or about to be, unless people paused the
// workflow.
func (s *shop) checkApart() {
	if !s.w.plan.parts || len(s.w.rows(`select id||'' from workflows where desired <> 'active'`)) > 0 {
		return
	}
	late := time.Now().Add(-s.w.bound()).UnixMilli()
	for _, p := range s.w.rows(`select name||'', id||'' from partitions p where place = 0 and issue = '' and next_at is null and rejected_run is null and updated_at < $1
		and exists (select 1 from events e where e.workflow_id = p.workflow_id and e.part = p.id and e.status = 'pending')`, late) {
		if len(s.w.rows(`select id||'' from jobs where lane like $1`, "%/"+p[1])) == 0 {
			s.w.fail("partition %s has events and rests, and nothing holds it back", p[0])
		}
	}
}

// checkParts holds, in the end, that events are sorted into their partitions, that
// those of one partition were ordered in the order of the topic, and that a partition
// has no place and nothing left. Whoever was skipped, or said to be ordered who was
// not, has no place in that order.
func (s *shop) checkParts() {
	if !s.w.plan.parts {
		return
	}
	last := map[string]string{}
	for _, e := range s.w.rows(`select e.message_id||'', coalesce(p.name, '')||'' from events e left join partitions p on p.workflow_id = e.workflow_id and p.id = e.part where e.topic = 'in' order by e.seq`) {
		id, part := e[0], e[1]
		if part != partOf(id) && !s.skipped[id] && !s.w.pruned {
			s.w.fail("event %s is of partition %s and was sorted into %q", id, partOf(id), part)
		}
		at, ordered := s.w.desk.first[id]
		if !ordered || s.skipped[id] || s.lied(id) {
			continue
		}
		if before := last[part]; before != "" && s.w.desk.first[before] > at {
			s.w.fail("event %s of partition %s was ordered before %s, which was there first", id, part, before)
		}
		last[part] = id
	}
	for _, p := range s.w.rows(`select name||'', place||'', issue||'' from partitions where place <> 0 or issue <> '' or open <> 0`) {
		s.w.fail("nothing is left to do, and partition %s", strings.Join(p, " / "))
	}
}
