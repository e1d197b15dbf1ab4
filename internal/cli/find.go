package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// key is what the address of a thing has for its name: the name itself, or the
// id, which is looked up unless it is what the user wrote.
func (k kind) key(ctx context.Context, c *client.Client, name string) (string, error) {
	if _, err := k.pathOf(name); err != nil {
		return "", err
	}
	if uuid.Validate(name) == nil {
		return name, nil
	}
	if k.short && isShort(name) {
		return k.whole(ctx, c, name)
	}
	if !k.byID {
		return name, nil
	}
	items, _, err := c.List(ctx, k.path, url.Values{"name": {name}}, 0)
	if err != nil {
		return "", err
	}
	for _, raw := range items {
		if nameOf(raw) == name {
			return idOf(raw), nil
		}
	}
	return "", k.unknown(ctx, c, name)
}

const (
	leastShort   = 6    // characters that stand for a whole id, at least
	mostShort    = 16   // and at most, if they are digits: ids of jobs have more
	mostSearched = 1000 // things among which a short id is looked for
)

// isShort reports whether a text can be a part of an id.
func isShort(text string) bool {
	if _, err := strconv.ParseUint(text, 10, 64); err == nil && len(text) > mostShort {
		return false
	}
	return len(text) >= leastShort && !strings.ContainsFunc(strings.ToLower(text), func(c rune) bool { return !strings.ContainsRune("0123456789abcdef-", c) })
}

// whole is the id that begins or ends with the part that was written, among the
// newest things. Ids of about the same time begin alike, so their ends are the
// shorter names.
func (k kind) whole(ctx context.Context, c *client.Client, part string) (string, error) {
	items, _, err := c.List(ctx, k.path, nil, mostSearched)
	if err != nil {
		return "", err
	}
	var ids []string
	part = strings.ToLower(part)
	for _, raw := range items {
		if id := idOf(raw); id == part {
			return id, nil
		} else if strings.HasPrefix(id, part) || strings.HasSuffix(id, part) {
			ids = append(ids, id)
		}
	}
	switch len(ids) {
	case 0:
		return "", &pawl.Error{Code: pawl.CodeNotFound, Msg: fmt.Sprintf("none of the newest %d %s has an id that begins or ends with %s", mostSearched, k.plural, part), Hint: "pawl get " + k.plural + " lists them; write the whole id of an older one."}
	case 1:
		return ids[0], nil
	}
	return "", usageError("Write more of it: "+strings.Join(ids[:min(len(ids), 3)], ", ")+".", "%s can be any of %d %s", part, len(ids), k.plural)
}

// unknown is the error of a name that nothing has.
func (k kind) unknown(ctx context.Context, c *client.Client, name string) error {
	e := &pawl.Error{Code: pawl.CodeNotFound, Msg: fmt.Sprintf("there is no %s %q", k.singular, name), Hint: "pawl get " + k.plural + " lists them."}
	items, _, err := c.List(ctx, k.path, nil, 0)
	var names []string
	for _, raw := range items {
		names = append(names, nameOf(raw))
	}
	if guess := pawl.Suggest(name, names, ""); err == nil && guess != "" { // without a guess it is still the answer
		e.Hint = guess + " " + e.Hint
	}
	return e
}

// located is where the thing with a name or the part of an id is, and its whole
// id or name.
func (k kind) located(ctx context.Context, c *client.Client, name string) (path, whole string, err error) {
	if whole, err = k.key(ctx, c, name); err != nil {
		return "", "", err
	}
	path, err = k.pathOf(whole)
	return path, whole, err
}

// locateOne is where the thing with a name is.
func (k kind) locateOne(ctx context.Context, c *client.Client, name string) (string, error) {
	key, err := k.key(ctx, c, name)
	if err != nil {
		return "", err
	}
	return k.pathOf(key)
}

func nameOf(raw json.RawMessage) string {
	var thing struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(raw, &thing) // without a name it has none
	return thing.Name
}

// with adds a field to an object unless it has it; the fields come sorted.
func with(raw json.RawMessage, name, value string) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	if _, has := fields[name]; has {
		return raw, nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("write object: %w", err)
	}
	fields[name] = text
	return json.Marshal(fields)
}
