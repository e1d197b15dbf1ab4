package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

const secret = "vk-31415926"

func testKey(t *testing.T) Key {
	t.Helper()
	k, err := NewKey("TEAM_KEY", secret)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// C-35: whatever prints, logs or encodes a run does not show the key of its
// caller.
func TestKeyIsNeverShown(t *testing.T) {
	k := testKey(t)
	run := Run{RunID: "r1", Caller: Caller{AccountID: "b1", Key: k}}
	hiding := struct{ run Run }{run} // fmt calls no methods in fields that are not exported
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	logger.Info("a", "key", k, "run", run, "caller", &run.Caller)
	slog.New(slog.NewTextHandler(&log, nil)).Info("a", "key", k, "run", run)
	encoded, err := json.Marshal(map[string]any{"run": run, "key": &k})
	texts := []string{log.String(), string(encoded), k.String(), k.GoString(), fmt.Sprint(k, &k, run, hiding, fmt.Errorf("x: %v", k))}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t"} {
		texts = append(texts, fmt.Sprintf(verb, k), fmt.Sprintf(verb, run), fmt.Sprintf(verb, hiding))
	}
	for _, text := range texts {
		if strings.Contains(text, secret) || strings.Contains(text, fmt.Sprintf("%x", secret)) || text == "" {
			t.Errorf("shown: %s", text)
		}
	}
	if err != nil || !strings.Contains(string(encoded), "[key]") || k.Reveal() != secret || k.IsZero() || !(Key{}).IsZero() || (Key{}).Reveal() != "" {
		t.Errorf("%s, %v", encoded, err)
	}
	for _, bad := range []string{"", "a\nb", "a\x00"} {
		if _, err := NewKey("X", bad); err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// C-35: a graph that says its key again is not believed to have to.
func TestKeyIsTakenOutOfWhatGraphsSay(t *testing.T) {
	k := testKey(t)
	raw, _ := json.Marshal(map[string]string{"a": "Bearer " + secret})
	got := k.Clean(Result{Message: "no " + secret, TraceID: secret, Output: raw, Interrupt: raw})
	want := Result{Message: "no [secret TEAM_KEY]", TraceID: "[secret TEAM_KEY]", Output: json.RawMessage(`{"a":"Bearer [secret TEAM_KEY]"}`), Interrupt: json.RawMessage(`{"a":"Bearer [secret TEAM_KEY]"}`)}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("%+v", got)
	}
	own := errors.New("own")
	if err := k.CleanError(own); !errors.Is(err, own) || k.CleanError(nil) != nil || (Key{}).CleanError(own) != own { //nolint:errorlint // the very same
		t.Error(err)
	}
	if err := k.CleanError(fmt.Errorf("find %s: %w", secret, own)); err.Error() != "find [secret TEAM_KEY]: own" || errors.Is(err, own) {
		t.Error(err)
	}
}

func callerSettings(t *testing.T, text string) (*connector.Settings, CallerKey) {
	t.Helper()
	doc, err := definition.ReadSettings("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var written struct {
		Headers   definition.Secrets `json:"headers"`
		CallerKey *WrittenCallerKey  `json:"callerKey"`
	}
	s := connector.NewSettings(doc, connector.Env{})
	s.Read(&written)
	key := written.CallerKey.CallerKey(s)
	Headers(s, written.Headers, key)
	return s, key
}

// C-35: the key goes where the definition says, and without that nowhere.
func TestCallerKeyGoesIntoTheHeaderOfTheDefinition(t *testing.T) {
	for text, want := range map[string]string{
		"url: x":                         "",
		"callerKey: {}":                  "Authorization: Bearer " + secret,
		"callerKey: {header: X-Api-Key}": "X-Api-Key: " + secret,
		`callerKey: {header: x-api-key, prefix: ""}`:      "X-Api-Key: " + secret,
		`callerKey: {prefix: ""}`:                         "Authorization: " + secret,
		`callerKey: {header: authorization}`:              "Authorization: Bearer " + secret,
		`callerKey: {header: X-Caller, prefix: "Token "}`: "X-Caller: Token " + secret,
	} {
		s, c := callerSettings(t, text)
		if len(s.Fields()) > 0 {
			t.Errorf("%s: %v", text, s.Fields())
		}
		h := http.Header{}
		c.Put(h, Key{})
		if len(h) > 0 {
			t.Errorf("%s: a caller without a key sends %v", text, h)
		}
		c.Put(h, testKey(t))
		got := ""
		for name, values := range h {
			got += name + ": " + strings.Join(values, ",")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestCallerKeyThatCannotBeIsRefusedAtItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"callerKey: true":                                         "x.yaml:1:12: callerKey must be a mapping of names and values",
		"callerKey: {header: Idempotency-Key}":                    "x.yaml:1:21: the header Idempotency-Key is set by Pawl",
		"callerKey: {header: accept}":                             "x.yaml:1:21: the header accept is set by Pawl",
		"callerKey: {header: a b}":                                "x.yaml:1:21: \"a b\" is not the name of a header",
		`callerKey: {header: ""}`:                                 "x.yaml:1:21: \"\" is not the name of a header",
		"callerKey: {header: 5}":                                  "x.yaml:1:21: header must be a text",
		`callerKey: {prefix: "a\nb"}`:                             "x.yaml:1:21: prefix holds a line break",
		"callerKey: {prefix: '${X} '}":                            "x.yaml:1:21: prefix is sent as it is",
		"callerKey: {heder: X}":                                   "x.yaml:1:13: unknown field \"heder\". Did you mean header?",
		"headers: {authorization: x}\ncallerKey: {}":              "x.yaml:1:11: the header authorization is that of callerKey",
		"headers: {x-API-key: x}\ncallerKey: {header: X-Api-Key}": "x.yaml:1:11: the header x-API-key is that of callerKey",
	} {
		s, _ := callerSettings(t, text)
		if got := fmt.Sprint(s.Fields()); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
