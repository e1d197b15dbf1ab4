package workflow

import (
	"encoding/json"
	"slices"
	"strings"
)

const (
	defaultPartitions = 10   // at work at once
	maxPartitions     = 1000 // the same, of a script that says it
	mostPath          = 200  // characters of a path
)

const partitionHint = `write partition: "payload.customerId", or partition: (event) => event.payload.customerId`

// partition checks by what the events of a consumer are apart.
func (c *checker) partition(h declaredHandler, k *Consumer) {
	v := h.fields.get("partition")
	path, isText := v.text()
	switch {
	case !h.fields.has("partition"):
	case v.function:
		k.PartitionBy = true
	case !isText:
		c.fault(h.at("partition"), partitionHint, "%spartition must be the path of a field or a function, not %s", h.who(), v.kind())
	default:
		if problem := pathProblem(path); problem != "" {
			c.fault(h.at("partition"), partitionHint, "%spartition is %s, which %s", h.who(), quoted(path), problem)
		}
		k.Partition = path
	}
	if !h.fields.has("partitionLimit") {
		return
	}
	limit := h.fields.get("partitionLimit")
	switch err := json.Unmarshal(limit.raw, &k.PartitionLimit); {
	case limit.kind() != "a number" || err != nil || k.PartitionLimit < 1 || k.PartitionLimit > maxPartitions:
		c.fault(h.at("partitionLimit"), "write partitionLimit: 10", "%spartitionLimit must be a whole number from 1 to %d", h.who(), maxPartitions)
	case !h.fields.has("partition"):
		c.fault(h.at("partitionLimit"), "add partition, or remove partitionLimit", "%sit has partitionLimit but no partition", h.who())
	}
}

// pathProblem says what is wrong with the path of a field, or nothing.
func pathProblem(path string) string {
	steps := strings.Split(path, ".")
	switch {
	case len([]rune(path)) > mostPath:
		return "is too long"
	case slices.Contains(steps, ""):
		return "has an empty step"
	case steps[0] == "payload", len(steps) == 1 && (steps[0] == "messageId" || steps[0] == "topic"):
		return ""
	}
	return "leads to nothing that an event has: it begins with payload, or is messageId or topic"
}

// checkPartitions refuses consumers that would share the events of one that has
// partitions: an event has one.
func (c *checker) checkPartitions(config Config) {
	for _, k := range config.Consumers {
		if !k.Partitioned() {
			continue
		}
		for _, topic := range k.Subscribe {
			others := slices.DeleteFunc(config.Subscribers(topic), func(name string) bool { return name == k.Name })
			if len(others) > 0 {
				h := declaredHandler{"consumers", k.Name, object{}}
				c.fault(h.at("partition"), "give each a topic of its own", "%sit has partition, but %s subscribes to topic %s too", h.who(), quoted(others[0]), quoted(topic))
				break
			}
		}
	}
}

// Partitioned reports whether the consumer has partitions.
func (c Consumer) Partitioned() bool { return c.Partition != "" || c.PartitionBy }

// places is how many partitions of the consumer are at work at once.
func (c Consumer) places() int {
	if c.PartitionLimit > 0 {
		return c.PartitionLimit
	}
	return defaultPartitions
}

// PartitionWords are by what the events of the consumer are apart, and how many
// partitions are at work at once; both are zero without partitions.
func (c Consumer) PartitionWords() (by string, limit int) {
	switch {
	case !c.Partitioned():
		return "", 0
	case c.PartitionBy:
		return "function", c.places()
	}
	return c.Partition, c.places()
}

// partitioned are the consumers that have partitions.
func (c Config) partitioned() (list []Consumer) {
	for _, k := range c.Consumers {
		if k.Partitioned() {
			list = append(list, k)
		}
	}
	return list
}
