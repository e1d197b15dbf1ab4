package tool

import (
	"encoding/json"
	"testing"
)

// DESIGN 6: scripts and the database never hold the value of a secret.
func TestSetRedactsTheSecretsOfAllConnections(t *testing.T) {
	dir := folder(t, map[string]string{
		"a.yaml": "kind: connection\nname: a\ntype: http\nbaseUrl: ${SHOP_URL}\nheaders: {X-Key: 'k=${SHOP_KEY}', X-Other: 'file:other.key'}\n",
		"b.yaml": "kind: connection\nname: b\ntype: http\nbaseUrl: https://b.example\nheaders: {X-Key: '${B_KEY}', X-Pin: '${PIN}'}\nreconcile: {post: {get: /x}}\n",

		"other.key": "from-a-file\n",
	})
	environment := map[string]string{"SHOP_URL": "https://shop.example.com", "SHOP_KEY": "alpha-1", "B_KEY": "beta-22", "PIN": "1234"}
	set, err := Load(dir, Env{CheckOnly: true, Getenv: func(name string) string { return environment[name] }})
	if err != nil {
		t.Fatal(err, fieldsOf(err))
	}
	const raw = `{"text":"alpha-1 and beta-22, from-a-file","pin":"1234","url":"https://shop.example.com","n":[1.0]}`
	const want = `{"text":"[secret SHOP_KEY] and [secret B_KEY], [secret other.key]","pin":"1234","url":"https://shop.example.com","n":[1.0]}`
	if got := string(set.Redact(json.RawMessage(raw))); got != want {
		t.Errorf("Redact = %s", got)
	}
	if got := set.RedactText(raw); got != want {
		t.Errorf("RedactText = %s", got)
	}
	var none Set
	if string(none.Redact(json.RawMessage(raw)))+none.RedactText(raw) != raw+raw {
		t.Error("a set without secrets changes texts")
	}
}
