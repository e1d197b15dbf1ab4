package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// kind is one kind of thing that commands can show and change.
type kind struct {
	plural   string
	singular string
	aliases  []string
	path     string // of the list; one thing has its name below it
	columns  []column

	// below is set where there is a list for each thing of another kind only,
	// which parent is: the list is below that thing under this word, and path
	// is that of one thing, or empty if a thing cannot be read alone.
	below  string
	parent func() kind

	// parents are all kinds that such a list can be of, where there are
	// several; those beside parent are written KIND/NAME.
	parents []func() kind

	// alone reports whether a name is that of one such thing, and not of its
	// parent. Nil: none is.
	alone func(name string) bool

	// everywhere: such a list is that of all parents where none is named.
	everywhere bool

	// byID: things are asked for by their id, so that names are looked up
	// first.
	byID bool

	// short: the beginning or the end of an id is enough, if only one has it.
	short bool

	// owned: lists have the things of the caller only, unless all are asked
	// for.
	owned bool

	// listed: things are in the list only, and are found there by their name.
	listed bool

	// instead is what to do where one thing cannot be asked for.
	instead string

	// row are the cells of one thing, for all columns. Nil: the columns are
	// the fields of the things themselves, in the order of the definition of
	// their parent.
	row func(raw json.RawMessage, now time.Time) ([]string, error)

	// describe tells everything about one thing, in words; nil cannot. more
	// tells what has to be asked for beside; nil if nothing has.
	describe func(raw json.RawMessage, now time.Time) (string, error)
	more     func(ctx context.Context, c *client.Client, raw json.RawMessage, now time.Time) (string, error)

	// removed is what delete says it did, such as "cancelled"; empty cannot be
	// deleted. loses is what is lost by it, where one should think twice.
	removed string
	loses   string

	// losesNow is loses for a thing as it is, where that makes a difference,
	// and took is what delete adds by its answer. Nil if there is nothing.
	losesNow func(raw json.RawMessage, query url.Values) (string, error)
	took     func(answer json.RawMessage, query url.Values) string

	// locate is where a thing is that has a name of several words, and the
	// name; nil if the name is one word.
	locate func(words []string) (path, name string, err error)

	// verbs are what can be asked of a thing beside: run, pause, resume, why.
	verbs []string

	// filters are the parameters of the list that get has flags for; sifts are
	// fields of the things that it has flags for, because the server does not
	// choose by them.
	filters []string
	sifts   []string

	watch watchRules
}

// watchRules say how a kind is watched. Without subject, changed and reread the
// list is read again when an event of these kinds has come, and now and then.
type watchRules struct {
	events []string // the kinds of events that tell of a change; empty is all

	// subject is the thing that an event carries. Where events do not carry
	// it, changed is the name by which to read it, empty if there is none.
	subject func(data []byte) (json.RawMessage, error)
	changed func(e client.StreamEvent) (string, error)

	// reread are the things that an event may have changed, where it neither
	// carries nor names one.
	reread func(ctx context.Context, w *watching, e client.StreamEvent) ([]json.RawMessage, error)

	// brief makes things look the same wherever they come from: a list, an
	// event, or the answer about one thing. Nil if they do anyway.
	brief func(raw json.RawMessage) (json.RawMessage, error)

	// compare is what of a thing is new when it has changed. Nil is all.
	compare func(raw json.RawMessage) (json.RawMessage, error)
}

// kinds are the kinds of this version.
func kinds() []kind {
	return []kind{
		workflowKind(), sourceKind(), scheduleKind(), laneKind(), runKind(), inputKind(), outputKind(), eventKind(), partitionKind(),
		rowKind(), rejectKind(), slotKind(), grantKind(), accountKind(), receiptKind(), backfillKind(), calendarKind(),
		versionKind(), approvalKind(), questionKind(), ruleKind(), connectionKind(), hookKind(), deliveryKind(),
		jobKind(), taskKind(), tokenKind(), nodeKind(),
	}
}

// kindNames are the plural names of the kinds that a test accepts; nil accepts
// all.
func kindNames(accept func(kind) bool) []string {
	var names []string
	for _, k := range kinds() {
		if accept == nil || accept(k) {
			names = append(names, k.plural)
		}
	}
	return names
}

// findKind finds a kind by its plural, singular or alias.
func findKind(word string) (kind, error) {
	lower := strings.ToLower(word)
	for _, k := range kinds() {
		if lower == k.plural || lower == k.singular || slices.Contains(k.aliases, lower) {
			return k, nil
		}
	}
	if lower == storageWord {
		return kind{}, usageError("pawl get storage", "storage can only be shown with get")
	}
	there := "Kinds: " + strings.Join(kindNames(nil), ", ") + "."
	if guess := pawl.Suggest(word, kindNames(nil), ""); guess != "" {
		there = guess + " " + there
	}
	return kind{}, usageError(there, "this version has no kind %q", word)
}

// findKindFor finds a kind of which a verb can be asked.
func findKindFor(verb, word string) (kind, error) {
	k, err := findKind(word)
	if err == nil && !slices.Contains(k.verbs, verb) {
		can := strings.Join(kindNames(withVerb(verb)), ", ")
		err = usageError("Kinds for it: "+can+".", "pawl %s does not apply to %s", verb, k.plural)
	}
	return k, err
}

// withVerb accepts the kinds of which a verb can be asked.
func withVerb(verb string) func(kind) bool {
	return func(k kind) bool { return slices.Contains(k.verbs, verb) }
}

// pathOf is where one thing is.
func (k kind) pathOf(name string) (string, error) {
	if name == "" || name == "." || name == ".." {
		return "", usageError("", "%q names no %s", name, k.singular)
	}
	return k.path + "/" + url.PathEscape(name), nil
}

// labelled reports whether things of the kind carry labels.
func (k kind) labelled() bool { return k.listed || slices.Contains(k.verbs, verbPause) }

// shown are the columns of a format.
func (k kind) shown(format string) []column {
	return slices.DeleteFunc(slices.Clone(k.columns), func(c column) bool { return c.wide && format != formatWide })
}

// ofEverybody are the columns where the things of everybody are shown.
func (k kind) ofEverybody() []column {
	columns := slices.Clone(k.columns)
	for i, c := range columns {
		columns[i].wide = c.wide && !c.everybody
	}
	return columns
}

// cells are the cells of the columns that a format shows.
func (k kind) cells(raw json.RawMessage, now time.Time, format string) ([]string, error) {
	all, err := k.row(raw, now)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", k.singular, err)
	}
	var cells []string
	for i, c := range k.columns {
		if !c.wide || format == formatWide {
			cells = append(cells, all[i])
		}
	}
	return cells, nil
}

// without leaves fields out of an object; the others come sorted.
func without(raw json.RawMessage, names ...string) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	for _, name := range names {
		delete(fields, name)
	}
	return json.Marshal(fields)
}
