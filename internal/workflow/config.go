package workflow

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/when"
)

// Config is what a script declares, checked. It is stored as JSON with the
// version of the script that it was read from, so what one release wrote the
// next one must be able to read.
type Config struct {
	Name      string            `json:"name"`
	Topics    []string          `json:"topics"`              // sorted
	Producers []Producer        `json:"producers,omitempty"` // in the order of the source
	Consumers []Consumer        `json:"consumers,omitempty"` // in the order of the source
	Labels    map[string]string `json:"labels,omitempty"`
	Keep      map[string]string `json:"keep,omitempty"` // for how long its things are kept, where it says so

	Expect *client.Expect `json:"expect,omitempty"` // what is expected of it; nil: nothing
	Needs  []client.Need  `json:"needs,omitempty"`  // the sources that must be fresh before a run begins
}

// Producer looks at the outside, on its schedule, and publishes what is new.
type Producer struct {
	Name      string   `json:"name"`
	Publishes []string `json:"publishes"`
	Schedule  Schedule `json:"schedule"`
}

// Consumer takes events and acts on the outside.
type Consumer struct {
	Name      string   `json:"name"`
	Subscribe []string `json:"subscribe"`
	Publishes []string `json:"publishes,omitempty"`
	HasMutate bool     `json:"hasMutate"`
	HasNext   bool     `json:"hasNext"`
	AfterCall bool     `json:"afterCall,omitempty"` // mutate has code behind its call, which never runs

	// Partition is the path of the field that says the partition of an event;
	// PartitionBy says that a function of the script does.
	Partition      string `json:"partition,omitempty"`
	PartitionBy    bool   `json:"partitionBy,omitempty"`
	PartitionLimit int    `json:"partitionLimit,omitempty"` // zero: defaultPartitions
}

// Schedule says when a producer runs, as the script wrote it: an interval, or
// a cron expression with an optional zone, and what limits it.
type Schedule struct {
	Interval string         `json:"interval,omitempty"`
	Cron     string         `json:"cron,omitempty"`
	Timezone string         `json:"timezone,omitempty"` // with Cron or limits only; empty is UTC
	From     string         `json:"from,omitempty"`
	Until    string         `json:"until,omitempty"`
	Except   []string       `json:"except,omitempty"`
	Jitter   string         `json:"jitter,omitempty"`
	Missed   *client.Missed `json:"missed,omitempty"` // nil: what came due late is one run
}

// MinInterval is the shortest interval of a producer.
const MinInterval = time.Second

// Spec returns the schedule that tells the instants, without the days of
// calendars. It fails for a schedule that Check would refuse; one that was checked
// can fail only if the machine has lost the zone since (X-14: that is never guessed
// around).
func (s Schedule) Spec() (when.Schedule, error) {
	if s.limited() {
		return s.rule().Schedule(when.Context{MinInterval: MinInterval})
	}
	return when.New(when.Spec{Interval: s.Interval, Cron: s.Cron, Timezone: s.Timezone, MinInterval: MinInterval})
}

// limited reports whether the schedule says more than an interval or an expression.
func (s Schedule) limited() bool { return s.timing() != "" }

// timing is what the row of the schedule keeps of what limits it.
func (s Schedule) timing() string {
	limits := Schedule{From: s.From, Until: s.Until, Except: s.Except, Jitter: s.Jitter, Missed: s.Missed}
	if raw, _ := json.Marshal(limits); string(raw) != "{}" { // of types that can be JSON
		return string(raw)
	}
	return ""
}

// rule is the schedule with its limits.
func (s Schedule) rule() when.Rule {
	r := when.Rule{Interval: s.Interval, Timezone: s.Timezone, From: s.From, Until: s.Until, Except: s.Except, Jitter: s.Jitter}
	if s.Cron != "" {
		r.Cron = []string{s.Cron}
	}
	return r
}

// Type is "interval" or "cron".
func (s Schedule) Type() string {
	if s.Interval != "" {
		return string(when.KindInterval)
	}
	return string(when.KindCron)
}

// Value is the interval or the expression. The zone is not part of it.
func (s Schedule) Value() string {
	if s.Interval != "" {
		return s.Interval
	}
	return s.Cron
}

// Producer finds a producer by its name.
func (c Config) Producer(name string) (Producer, bool) {
	i := slices.IndexFunc(c.Producers, func(p Producer) bool { return p.Name == name })
	if i < 0 {
		return Producer{}, false
	}
	return c.Producers[i], true
}

// Consumer finds a consumer by its name.
func (c Config) Consumer(name string) (Consumer, bool) {
	i := slices.IndexFunc(c.Consumers, func(k Consumer) bool { return k.Name == name })
	if i < 0 {
		return Consumer{}, false
	}
	return c.Consumers[i], true
}

// subscribed returns the topics that have a consumer.
func (c Config) subscribed() []string {
	var topics []string
	for _, k := range c.Consumers {
		topics = append(topics, k.Subscribe...)
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}

// Subscribers returns the names of the consumers that subscribe to a topic, in
// the order of the source.
func (c Config) Subscribers(topic string) []string {
	var names []string
	for _, k := range c.Consumers {
		if slices.Contains(k.Subscribe, topic) {
			names = append(names, k.Name)
		}
	}
	return names
}
