package workflow

import (
	"slices"
	"time"

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
}

// Schedule says when a producer runs, as the script wrote it: an interval, or
// a cron expression with an optional zone.
type Schedule struct {
	Interval string `json:"interval,omitempty"`
	Cron     string `json:"cron,omitempty"`
	Timezone string `json:"timezone,omitempty"` // with Cron only; empty is UTC
}

// MinInterval is the shortest interval of a producer.
const MinInterval = time.Second

// Spec returns the schedule that tells the instants. It fails for a schedule
// that Check would refuse; one that was checked can fail only if the machine
// has lost the zone since (X-14: that is never guessed around).
func (s Schedule) Spec() (when.Schedule, error) {
	return when.New(when.Spec{Interval: s.Interval, Cron: s.Cron, Timezone: s.Timezone, MinInterval: MinInterval})
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
