package workflow

import (
	"strings"
	"testing"
)

const (
	hintSchedule = `write schedule: { interval: "5m" } or schedule: { cron: "0 9 * * 1-5", timezone: "Europe/Berlin" }`
	hintNeither  = `give an interval such as "5m" or a cron expression such as "0 9 * * 1-5"`
	hintOrphan   = "subscribe a consumer to it, or do not publish it"
)

// 3.11.1, 3.11.2: a producer.
func TestFaultsOfAProducer(t *testing.T) {
	c := newChecking(t)
	const schedule = ` schedule: { interval: "5m" }, `
	for producer, want := range map[string]string{
		`▶p: { publishes: ["a"],` + schedule + `}`:                                  `producer "p": handler is missing | add async handler(ctx, state) { ... }`,
		`p: { publishes: ["a"],` + schedule + `▶handler: "x" }`:                     `producer "p": handler must be a function, not a string | `,
		`p: { publishes: ["a"],` + schedule + `handler() {}, ▶hander() {} }`:        `producer "p": unknown field "hander" | did you mean "handler"?`,
		`p: { publishes: ["a"],` + schedule + `handler() {}, ▶"subscribe": ["a"] }`: `producer "p": unknown field "subscribe" | the fields are publishes, schedule, handler, description`,
		`p: { publishes: ["a"],` + schedule + `handler() {}, ▶description: [] }`:    `producer "p": description must be a string, not a list | `,
		`▶p: {` + schedule + `handler() {} }`:                                       `producer "p": publishes is missing | write publishes: ["mail.received"]`,
		`p: { ▶publishes: [],` + schedule + `handler() {} }`:                        `producer "p": publishes is empty | write publishes: ["mail.received"]`,
		`p: { ▶publishes: "a",` + schedule + `handler() {} }`:                       `producer "p": publishes must be a list, not a string | write publishes: ["a"]`,
		`p: { ▶publishes: () => [],` + schedule + `handler() {} }`:                  `producer "p": publishes must be a list, not a function | write publishes: ["mail.received"]`,
		`p: { publishes: ["a", ▶1],` + schedule + `handler() {} }`:                  `producer "p": publishes[1] must be a string, not a number | `,
		`p: { publishes: ["a", ▶"a"],` + schedule + `handler() {} }`:                `producer "p": publishes names topic "a" twice | `,
		`p: { publishes: ["a", ▶"b.recieved"],` + schedule + `handler() {} }`:       `producer "p": publishes names topic "b.recieved", which is not declared | did you mean "b.received"?`,
		`p: { publishes: ["a", ▶"else"],` + schedule + `handler() {} }`:             `producer "p": publishes names topic "else", which is not declared | add it to topics`,
		`p: { publishes: ["a", ▶"b.received"],` + schedule + `handler() {} }`:       `producer "p": it publishes to topic "b.received", to which no consumer subscribes | ` + hintOrphan,
		`▶p: () => 1`:   `producer "p": it must be an object, not a function | `,
		`▶p: [() => 1]`: `producer "p": it must be an object, not a list | `,
		`"p.q": { publishes: ["a"],` + schedule + `handler() {}, ▶"x.y"() {} }`:                               `producer "p.q": unknown field "x.y" | the fields are publishes, schedule, handler, description`,
		`p: { publishes: ["a"],` + schedule + `handler() {} }, ▶"p.q": { publishes: ["a"],` + schedule + ` }`: `producer "p.q": handler is missing | add async handler(ctx, state) { ... }`,
	} {
		c.expectFault(t, "export default { name: \"n\", topics: [\"a\", \"b.received\"],\n"+
			"  consumers: { c: { subscribe: [\"a\"], prepare() {} } },\n  producers: {\n      "+producer+"\n} }", want)
	}
}

const (
	hintExcept = `write except: ["2026-12-24/2027-01-01", "* * * * 6", "calendar:holidays"]`
	hintMissed = `write missed: { policy: "last", within: "12h" }`
)

// exactly one of interval and cron, and one that
// will work.
func TestFaultsOfASchedule(t *testing.T) {
	c := newChecking(t)
	for schedule, want := range map[string]string{
		`▶p: {`:                                `producer "p": schedule is missing | ` + hintSchedule,
		`p: { ▶schedule: "5m",`:                `producer "p": schedule must be an object, not a string | ` + hintSchedule,
		`p: { ▶schedule() {},`:                 `producer "p": schedule must be an object, not a function | ` + hintSchedule,
		`p: { ▶schedule: {},`:                  `producer "p": schedule has neither an interval nor a cron expression | ` + hintNeither,
		`p: { ▶schedule: { timezone: "UTC" },`: `producer "p": schedule has neither an interval nor a cron expression | ` + hintNeither,
		`p: { ▶schedule: { interval: "5m", cron: "* * * * *" },`:                       `producer "p": schedule has both an interval and a cron expression | keep one of the two`,
		`p: { schedule: { ▶every: "5m" },`:                                             `producer "p": unknown field "every" | the fields are interval, cron, timezone, from, until, except, jitter, missed`,
		`p: { schedule: { ▶interval: 5 },`:                                             `producer "p": schedule.interval must be a string, not a number | write interval: "5m"`,
		`p: { schedule: { ▶interval: "" },`:                                            `producer "p": schedule.interval is empty | write interval: "5m"`,
		`p: { schedule: { ▶interval: "0m" },`:                                          `producer "p": interval "0m" must be longer than zero | ` + hintIntervals,
		`p: { schedule: { ▶interval: "500ms" },`:                                       `producer "p": interval "500ms" must be digits followed by s, m, h or d | ` + hintIntervals,
		`p: { schedule: { ▶interval: "5 minutes" },`:                                   `producer "p": interval "5 minutes" has a unit other than s, m, h and d | ` + hintIntervals,
		`p: { schedule: { ▶interval: "5" },`:                                           `producer "p": interval "5" lacks a unit | ` + hintIntervals,
		`p: { schedule: { interval: "5m", ▶timezone: "UTC" },`:                         `producer "p": schedule has a time zone with an interval | a time zone goes with a cron expression only; remove it`,
		`p: { schedule: { ▶cron: null },`:                                              `producer "p": schedule.cron must be a string, not null | write cron: "0 9 * * 1-5"`,
		`p: { schedule: { ▶cron: "* * *" },`:                                           `producer "p": cron "* * *" has 3 fields and needs 5 | write five fields: minute hour day-of-month month day-of-week, such as 0 9 * * 1-5`,
		`p: { schedule: { cron: "0 9 * * *", ▶timezone: 1 },`:                          `producer "p": schedule.timezone must be a string, not a number | write timezone: "Europe/Berlin"`,
		`p: { schedule: { cron: "0 9 * * *", ▶timezone: "" },`:                         `producer "p": schedule.timezone is empty | write timezone: "Europe/Berlin"`,
		`p: { schedule: { cron: "0 9 * * *", ▶timezone: "Europe/Berln" },`:             `producer "p": unknown time zone "Europe/Berln" | did you mean Europe/Berlin?`,
		`p: { schedule: { interval: "5m", ▶from: 5 },`:                                 `producer "p": schedule.from must be a string, not a number | write from: "2026-12-01"`,
		`p: { schedule: { interval: "5m", ▶from: "soon" },`:                            `producer "p": schedule: "soon" is neither a date (2026-12-01) nor an instant (2026-12-01T08:00:00+01:00) | `,
		`p: { schedule: { interval: "5m", from: "2026-12-02", ▶until: "2026-12-01" },`: `producer "p": schedule: 2026-12-01 lies before 2026-12-02, where it begins | `,
		`p: { schedule: { interval: "5m", ▶except: "2026-12-24" },`:                    `producer "p": schedule.except must be a list, not a string | ` + hintExcept,
		`p: { schedule: { interval: "5m", except: ["2026-12-24", ▶7] },`:               `producer "p": schedule.except has a number, not a string | ` + hintExcept,
		`p: { schedule: { interval: "5m", except: ["2026-12-24", ▶"2026-02-30"] },`:    `producer "p": schedule: "2026-02-30" is not a date of the calendar: write 2026-12-25, or 2026-12-24/2027-01-01 for a range | `,
		`p: { schedule: { interval: "5m", except: [▶"calendar:a b"] },`:                `producer "p": schedule: "calendar:a b" names no calendar: write calendar:NAME | `,
		`p: { schedule: { interval: "5m", ▶jitter: "soon" },`:                          `producer "p": schedule: interval "soon" must be digits followed by s, m, h or d | ` + hintIntervals,
		`p: { schedule: { interval: "5m", ▶jitter: "2d" },`:                            `producer "p": schedule: the jitter 2d is too long: the longest is 1d | `,
		`p: { schedule: { interval: "5m", ▶missed: "all" },`:                           `producer "p": schedule.missed must be an object, not a string | ` + hintMissed,
		`p: { schedule: { interval: "5m", missed: { ▶policy: "some" } },`:              `producer "p": schedule.missed.policy must be skip, last or all, not "some" | ` + hintMissed,
		`p: { schedule: { interval: "5m", ▶missed: { within: "1h" } },`:                `producer "p": schedule.missed.policy must be skip, last or all, not "" | ` + hintMissed,
		`p: { schedule: { interval: "5m", missed: { policy: "all", ▶within: 5 } },`:    `producer "p": schedule.missed.within must be a string, not a number | ` + hintMissed,
		`p: { schedule: { interval: "5m", missed: { policy: "all", ▶within: "2y" } },`: `producer "p": schedule.missed.within must be a length of time of at most a year, such as 12h | ` + hintMissed,
		`p: { schedule: { interval: "5m", missed: { policy: "all", ▶withn: "2h" } },`:  `producer "p": unknown field "withn" | did you mean "within"?`,
		`p: { schedule: { ▶interval: "500ms", jitter: "5s" },`:                         `producer "p": schedule: interval "500ms" must be digits followed by s, m, h or d | ` + hintIntervals,
		`p: { schedule: { ▶cron: "0 0 31 2 *", timezone: "Europe/Berlin" },`:           `producer "p": day of month "31" at column 5 never happens in month "2" | choose a day that the month has in at least some years, or L for its last day`,
	} {
		c.expectFault(t, "export default { name: \"n\", topics: [\"a\"],\n"+
			"  consumers: { c: { subscribe: [\"a\"], prepare() {} } },\n  producers: {\n      "+schedule+` publishes: ["a"], handler() {} } } }`, want)
	}
}

// 3.11.1, 3.11.2: a consumer.
func TestFaultsOfAConsumer(t *testing.T) {
	c := newChecking(t)
	for consumer, want := range map[string]string{
		`▶c: { subscribe: ["a"] }`:                                          `consumer "c": prepare is missing | add async prepare(ctx, state) { ... }`,
		`c: { subscribe: ["a"], ▶prepare: {} }`:                             `consumer "c": prepare must be a function, not an object | `,
		`c: { subscribe: ["a"], prepare() {}, ▶mutate: true }`:              `consumer "c": mutate must be a function, not a boolean | `,
		`c: { subscribe: ["a"], prepare() {}, ▶next: null }`:                `consumer "c": next must be a function, not null | `,
		`c: { subscribe: ["a"], prepare() {}, async ▶mutat() {} }`:          `consumer "c": unknown field "mutat" | did you mean "mutate"?`,
		`c: { subscribe: ["a"], prepare() {}, ▶publishes: ["a"] }`:          `consumer "c": it has publishes but no next | add next, which is what publishes, or remove publishes`,
		`▶c: { prepare() {} }`:                                              `consumer "c": subscribe is missing | write subscribe: ["mail.received"]`,
		`c: { ▶subscribe: [], prepare() {} }`:                               `consumer "c": subscribe is empty | write subscribe: ["mail.received"]`,
		`c: { ▶subscribe: "a", prepare() {} }`:                              `consumer "c": subscribe must be a list, not a string | write subscribe: ["a"]`,
		`c: { subscribe: [▶"aa"], prepare() {} }`:                           `consumer "c": subscribe names topic "aa", which is not declared | did you mean "a"?`,
		`c: { subscribe: ["a"], ▶publishes: "b", prepare() {}, next() {} }`: `consumer "c": publishes must be a list, not a string | write publishes: ["b"]`,
		`c: { ▶subscribe: Array(101).fill("a"), prepare() {} }`:             `consumer "c": subscribe has 101 topics; at most 100 are allowed | `,
		`▶c: null`: `consumer "c": it must be an object, not null | `,
		`c: { subscribe: ["a"], prepare() {} } }, producers: { c: { publishes: ["a"], schedule: { interval: "1s" }, handler() {} } }, consumers: { ▶c: { subscribe: ["a"], prepare() {} }`: `consumer "c": a producer has the same name | give one of them another name`,
	} {
		c.expectFault(t, "export default { name: \"n\", topics: [\"a\", \"b\"],\n  consumers: {\n      "+consumer+"\n} }", want)
	}
}

// 3.11.5: names, and how many there may be.
func TestFaultsOfNames(t *testing.T) {
	c := newChecking(t)
	const consumer = `{ subscribe: ["a"], prepare() {} }`
	const consumers = "\nconsumers: { c: " + consumer + " }"
	for rest, want := range map[string]string{
		`▶topics: "a",` + consumers:                                                                                      `topics must be an object, not a string | write topics: { "mail.received": {} }`,
		`topics: { a: {}, ▶"b c": {} },` + consumers:                                                                     `topic "b c": its name has a space | ` + nameHint,
		`topics: { a: {}, ▶"b\u0007": {} },` + consumers:                                                                 `topic "b\a": its name has a character that cannot be printed | ` + nameHint,
		`topics: { a: {}, ▶'b#': {} },` + consumers:                                                                      `topic "b#": its name has the character '#' | ` + nameHint,
		`topics: ["a", ▶""],` + consumers:                                                                                `topic "": its name is empty | ` + nameHint,
		`topics: ["a", ▶1],` + consumers:                                                                                 `topics[1] must be a string, not a number | `,
		`topics: ["a", ▶"a"],` + consumers:                                                                               `topic "a": it is declared twice | `,
		`topics: { ▶a: 1 },` + consumers:                                                                                 `topic "a": it must be an object, not a number | write {}`,
		`topics: { a: { ▶keep: 1 } },` + consumers:                                                                       `topic "a": unknown field "keep" | the fields are description`,
		`▶topics: Array.from({ length: 101 }, (_, i) => "t" + i),` + consumers:                                           `the workflow has 101 topics; at most 100 are allowed | `,
		`topics: ["a"], consumers: { ▶"c d": ` + consumer + ` }`:                                                         `consumer "c d": its name has a space | ` + nameHint,
		`topics: ["a"], consumers: { ▶["c#"]: ` + consumer + ` }`:                                                        `consumer "c#": its name has the character '#' | ` + nameHint,
		`topics: ["a"], consumers: { ▶"": ` + consumer + ` }`:                                                            `consumer "": its name is empty | ` + nameHint,
		`topics: ["a"], consumers: { ▶` + strings.Repeat("x", 101) + `: ` + consumer + ` }`:                              `consumer "` + strings.Repeat("x", 100) + `": its name has more than 100 characters | ` + nameHint,
		`▶labels: Object.fromEntries(Array.from({ length: 101 }, (_, i) => ["c" + i, ""])), topics: ["a"], ` + consumers: `the workflow has 101 labels; at most 100 are allowed | `,
	} {
		c.expectFault(t, "export default { name: \"n\",\n  "+rest+" }", want)
	}
	c.expectFault(t, `▶export default { name: "n", topics: ["a"],
consumers: Object.fromEntries(Array.from({ length: 101 }, (_, i) => ["c" + i, `+consumer+`])) }`,
		"the workflow has 101 producers and consumers; at most 100 are allowed | split the workflow")
}

// What a consumer publishes may be for nobody yet: the example of the
// documentation ends with such a topic.
func TestConsumerMayPublishForNobody(t *testing.T) {
	c := newChecking(t)
	config, err := c.check(t, `export default { name: "n", topics: ["a", "b"], consumers: { c: { subscribe: ["a"], publishes: ["b"], prepare() {}, next() {} } } }`)
	if err != nil || len(config.Subscribers("b")) != 0 {
		t.Errorf("%+v, %v", config, err)
	}
}
