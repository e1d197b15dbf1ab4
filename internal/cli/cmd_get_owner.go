package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	pawl "github.com/pawlrun/pawl"
)

// ownerKinds are the kinds that other things belong to.
func ownerKinds() []kind { return []kind{workflowKind(), sourceKind(), scheduleKind()} }

// narrow applies --workflow, --source, --schedule, --all and -l, and finds out
// whose list is asked for.
func (g *getter) narrow(args []string) (err error) {
	if g.selector, err = parseSelector(g.labels); err != nil {
		return err
	}
	asked := strings.Join(args, " ")
	if len(g.selector) > 0 && (!g.kind.labelled() || g.name != "") {
		return usageError("", "-l does not apply to %s", asked)
	}
	if g.all {
		if !g.kind.owned || g.name != "" {
			return usageError("", "--all does not apply to %s", asked)
		}
		g.query.Set("all", "true")
		g.kind.columns = g.kind.ofEverybody()
	}
	if g.kind.below != "" {
		return g.ofParent(asked)
	}
	for _, k := range ownerKinds() {
		if err := g.ofOwner(k, asked); err != nil {
			return err
		}
	}
	return nil
}

// given is what was written for one of --workflow, --source and --schedule.
func (g *getter) given(k kind) string {
	if value := g.owners[k.singular]; value != nil {
		return *value
	}
	return ""
}

// ofOwner narrows a list that all have in common to one owner.
func (g *getter) ofOwner(k kind, asked string) error {
	name := g.given(k)
	if name == "" {
		return nil
	}
	accepted := map[string][]string{
		runKind().plural: {"workflow", "source", "schedule"}, approvalKind().plural: {"workflow"}, receiptKind().plural: {"schedule"},
	}
	fits := false
	for _, owner := range accepted[g.kind.plural] {
		fits = fits || owner == k.singular
	}
	if !fits || g.name != "" {
		return usageError("", "--%s does not apply to %s", k.singular, asked)
	}
	if g.owner != "" {
		return usageError("Leave one of them out.", "--%s cannot go together with that of another kind", k.singular)
	}
	g.owner = name
	if g.kind.plural != runKind().plural {
		g.query.Set(k.singular, name)
		return nil
	}
	g.query.Set("kind", k.singular)
	g.query.Set("lane", name)
	return nil
}

// chooseParent takes the kind of parent that was named, by its flag or as
// KIND/NAME, where there are several.
func (g *getter) chooseParent() {
	for _, parent := range g.kind.parents {
		k := parent()
		name, written := strings.CutPrefix(g.name, k.singular+"/")
		if written {
			g.name = name
		}
		if written || g.given(k) != "" {
			g.kind.parent = parent
		}
	}
}

// ofParent finds whose list is asked for, of a kind that has one for each
// parent. The name is the parent's, unless it is that of a thing which can be
// shown alone.
func (g *getter) ofParent(asked string) error {
	g.chooseParent()
	parent := g.kind.parent()
	for _, k := range ownerKinds() {
		if k.plural != parent.plural && g.given(k) != "" {
			return usageError("", "--%s does not apply to %s", k.singular, asked)
		}
	}
	g.owner = g.given(parent)
	switch one := g.kind.alone != nil && g.kind.alone(g.name); {
	case one && g.owner == "":
		return nil
	case g.name != "" && g.owner != "":
		return usageError("", "%q and --%s %s cannot go together", g.name, parent.singular, g.owner)
	case g.owner == "":
		g.owner, g.name = g.name, ""
	}
	if g.owner == "" && g.kind.everywhere {
		return nil
	}
	if _, err := parent.pathOf(g.owner); err != nil {
		return usageError(fmt.Sprintf("Write: pawl get %s %s", g.kind.plural, strings.ToUpper(parent.singular)), "%s are listed for one %s", g.kind.plural, parent.singular)
	}
	return nil
}

// lookUp finds the ids of what was named, where addresses have ids.
func (g *getter) lookUp(ctx context.Context) (err error) {
	if g.name != "" && (g.kind.byID || g.kind.short) {
		g.name, err = g.kind.key(ctx, g.client, g.name)
		return err
	}
	switch {
	case g.owner == "":
	case g.kind.below != "":
		g.path, err = g.listOf(ctx, g.owner)
	case g.query.Has(scheduleKind().singular): // of receipts, which know ids only
		var id string
		id, err = scheduleKind().key(ctx, g.client, g.owner)
		g.query.Set(scheduleKind().singular, id)
	}
	return err
}

// listOf is where the list of one owner is.
func (g *getter) listOf(ctx context.Context, owner string) (string, error) {
	path, err := g.kind.parent().locateOne(ctx, g.client, owner)
	return path + "/" + g.kind.below, err
}

// listOfOwners reads the list of one owner, or those of all, one after the
// other. Things that do not tell whose they are get it added.
func (g *getter) listOfOwners(ctx context.Context) (items []json.RawMessage, more bool, err error) {
	parent := g.kind.parent()
	if g.owner != "" {
		items, more, err = g.client.List(ctx, g.path, g.query, g.limit)
		if err != nil {
			return nil, false, err
		}
		return items, more, g.label(items, g.owner)
	}
	owners, _, err := g.client.List(ctx, parent.path, nil, 0)
	if err != nil {
		return nil, false, err
	}
	for _, raw := range owners {
		list, err := g.listBelow(ctx, parent, raw)
		if errors.Is(err, pawl.ErrNotFound) { // it was deleted meanwhile
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if items = append(items, list...); g.limit > 0 && len(items) > g.limit {
			return items[:g.limit], true, nil
		}
	}
	return items, false, nil
}

// listBelow reads the list of one of many owners, no more of it than is shown.
func (g *getter) listBelow(ctx context.Context, parent kind, owner json.RawMessage) ([]json.RawMessage, error) {
	key := nameOf(owner)
	if parent.byID {
		key = idOf(owner)
	}
	most := g.limit
	if most > 0 {
		most++ // tells whether there are more
	}
	list, _, err := g.client.List(ctx, parent.path+"/"+url.PathEscape(key)+"/"+g.kind.below, g.query, most)
	if err != nil {
		return nil, err
	}
	return list, g.label(list, nameOf(owner))
}

// label says of things whose they are.
func (g *getter) label(items []json.RawMessage, owner string) (err error) {
	for i := range items {
		if items[i], err = with(items[i], g.kind.parent().singular, owner); err != nil {
			return err
		}
	}
	return nil
}
