package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

const (
	completeTimeout = 2 * time.Second // whoever pressed the key waits
	mostCompleted   = 200             // names; more help nobody
)

// completeKind completes the first argument with the kinds that a test accepts
// (nil accepts all), and the second with the names that the server knows.
func completeKind(p *Process, flags *settingFlags, accept func(kind) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return kindNames(accept), cobra.ShellCompDirectiveNoFileComp
		case 1:
			if k, err := findKind(args[0]); err == nil && (accept == nil || accept(k)) {
				return namesFor(cmd.Context(), p, flags, k), cobra.ShellCompDirectiveNoFileComp
			}
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeName completes the only argument with the names of a kind.
func completeName(p *Process, flags *settingFlags, k kind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return namesFor(cmd.Context(), p, flags, k), cobra.ShellCompDirectiveNoFileComp
	}
}

// namesFor are what a thing of the kind can be called; nothing if the server
// does not answer at once, because there is nobody to tell.
func namesFor(ctx context.Context, p *Process, flags *settingFlags, k kind) []string {
	if k.below != "" {
		k = k.parent() // what is named is whose list it is
	}
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	hasty := *p
	hasty.Patience = 0
	c, err := flags.connect(&hasty)
	if err != nil {
		return nil
	}
	defer c.Close()
	items, _, err := c.List(ctx, k.path, nil, mostCompleted)
	if err != nil {
		return nil
	}
	var names []string
	for _, raw := range items {
		name := nameOf(raw)
		if name == "" {
			name = idOf(raw)
		}
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
