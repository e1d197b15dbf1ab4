package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// kind is one kind of thing that commands can show and change.
type kind struct {
	plural   string
	singular string
	aliases  []string
	path     string // of the list; one thing has its name below it
	columns  []column

	// row are the cells of one thing, for all columns.
	row func(raw json.RawMessage, now time.Time) ([]string, error)

	// describe tells everything about one thing, in words; nil cannot.
	describe func(raw json.RawMessage, now time.Time) (string, error)

	// removed is what delete says it did, such as "cancelled".
	removed string

	// filters are the parameters of the list that get has flags for.
	filters []string

	// subject is the thing that an event of this kind is about; without it a
	// kind cannot be watched.
	subject func(data []byte) (json.RawMessage, error)
}

// kinds are the kinds of this version.
func kinds() []kind { return []kind{jobKind(), tokenKind()} }

// kindNames are the plural names.
func kindNames() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.plural)
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
	there := "Kinds: " + strings.Join(kindNames(), ", ") + "."
	if guess := didYouMean(word, kindNames()); guess != "" {
		there = guess + " " + there
	}
	return kind{}, usageError(there, "this version has no kind %q", word)
}

// pathOf is where one thing is.
func (k kind) pathOf(name string) (string, error) {
	if name == "" || name == "." || name == ".." {
		return "", usageError("", "%q names no %s", name, k.singular)
	}
	return k.path + "/" + url.PathEscape(name), nil
}

// shown are the columns of a format.
func (k kind) shown(format string) []column {
	return slices.DeleteFunc(slices.Clone(k.columns), func(c column) bool { return c.wide && format != formatWide })
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

// completeKind completes the first argument with the kinds.
func completeKind(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return kindNames(), cobra.ShellCompDirectiveNoFileComp
}
