package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/google/uuid"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/cli/client"
)

// key is what the address of a thing has for its name: the name itself, or the
// id, which is looked up unless it is what the user wrote.
func (k kind) key(ctx context.Context, c *client.Client, name string) (string, error) {
	if _, err := k.pathOf(name); err != nil {
		return "", err
	}
	if !k.byID || uuid.Validate(name) == nil {
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

// unknown is the error of a name that nothing has.
func (k kind) unknown(ctx context.Context, c *client.Client, name string) error {
	e := &pawl.Error{Code: pawl.CodeNotFound, Msg: fmt.Sprintf("there is no %s %q", k.singular, name), Hint: "pawl get " + k.plural + " lists them."}
	items, _, err := c.List(ctx, k.path, nil, 0)
	var names []string
	for _, raw := range items {
		names = append(names, nameOf(raw))
	}
	if guess := didYouMean(name, names); err == nil && guess != "" { // without a guess it is still the answer
		e.Hint = guess + " " + e.Hint
	}
	return e
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
