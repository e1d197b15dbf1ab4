package repair

import (
	"maps"
	"slices"

	"github.com/pawlrun/pawl"
)

// Shape is how far a script reaches. The order of the lists has no meaning.
type Shape struct {
	Name      string // of the workflow
	Topics    []string
	Producers []string
	Consumers []string
	// Mutates are the consumers that have a mutate.
	Mutates []string
	// Publishes and Subscribes are topics by handler, such as
	// consumers.addRow: a producer and a consumer may share a name.
	Publishes  map[string][]string
	Subscribes map[string][]string
	Tools      []string // see ToolsOf
}

// Narrow refuses a repaired script that reaches further than the one before:
// it may drop things, and may not add any. The error names the first thing
// that is new.
func Narrow(before, after Shape) error {
	if before.Name != after.Name {
		return widens("the name of the workflow changes to " + quoted(after.Name))
	}
	lists := []struct {
		what          string
		before, after []string
	}{
		{"the topic ", before.Topics, after.Topics},
		{"the producer ", before.Producers, after.Producers},
		{"the consumer ", before.Consumers, after.Consumers},
		{"mutate in the consumer ", before.Mutates, after.Mutates},
	}
	for _, list := range lists {
		if added, found := firstNew(list.before, list.after); found {
			return widens(list.what + quoted(added) + " is new")
		}
	}
	if err := narrowTopics("publishes to ", before.Publishes, after.Publishes); err != nil {
		return err
	}
	if err := narrowTopics("subscribes to ", before.Subscribes, after.Subscribes); err != nil {
		return err
	}
	added, found := firstNew(before.Tools, after.Tools)
	switch {
	case found && added == AnyTool:
		return widens("it uses tools through a variable, which it did not before")
	case found:
		return widens("the tool " + quoted(added) + " is new")
	}
	return nil
}

func narrowTopics(does string, before, after map[string][]string) error {
	for _, handler := range slices.Sorted(maps.Keys(after)) {
		if added, found := firstNew(before[handler], after[handler]); found {
			return widens(quoted(handler) + " " + does + quoted(added) + ", which it did not before")
		}
	}
	return nil
}

// firstNew returns the first name, in order of the alphabet, that was not
// there before.
func firstNew(before, after []string) (string, bool) {
	for _, name := range slices.Sorted(slices.Values(after)) {
		if !slices.Contains(before, name) {
			return name, true
		}
	}
	return "", false
}

func widens(msg string) error {
	return &pawl.Error{
		Code: pawl.CodeInvalid, Reason: "repair_widens", Op: "check the repaired script",
		Msg: msg, Hint: "a repair may not reach further than the script that was deployed",
	}
}

// quoted shows a name that a stranger wrote.
func quoted(name string) string { return `"` + clip(name, 100) + `"` }
