package hook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/store/hookstore"
)

// A form is read as well, and so is the answer that Slack wants for its address.
func TestOtherBodies(t *testing.T) {
	k := newKit(t, sqlite(t))
	k.apply("kind: hook\nname: form\nverify: {scheme: token, secret: \"${GITHUB_SECRET}\"}\njob: {task: log}\n")
	send := func(contentType, body string) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/hooks/form", strings.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Authorization", "Bearer "+secret)
		return r
	}
	const form = "application/x-www-form-urlencoded"
	for _, c := range []struct{ kind, body, want string }{
		{form, "a=1&b=2&b=3", `{"a":"1","b":["2","3"]}`},
		{form, "payload=%7B%22x%22%3A1%7D", `{"x":1}`},
		{form, `{"y":1}`, `{"y":1}`},
		{"", "[1]", "[1]"},
		{"", "", "null"},
	} {
		k.expect(c.body, http.StatusAccepted, send(c.kind, c.body))
		list := k.effects()
		if got := string(list[len(list)-1].Payload); got != c.want {
			t.Errorf("%s becomes %s, want %s", c.body, got, c.want)
		}
	}
	k.expect("no form", http.StatusUnprocessableEntity, send(form, "%zz"))
	// Without an id equal bodies are one delivery, but for empty ones.
	k.expect("the same body", http.StatusOK, send("", "[1]"))
	k.expect("an empty one again", http.StatusAccepted, send("", ""))
	for _, d := range k.deliveries("form", "") {
		if _, there := d.Headers["Authorization"]; there {
			t.Error("the secret is kept")
		}
	}
}

func TestPayloads(t *testing.T) {
	k := newKit(t, sqlite(t))
	for i, c := range []struct{ payload, want string }{
		{"body", opened},
		{"body:issue", `{"id":7}`},
		{"body:issue.id", "7"},
		{"{fixed: true}", `{"fixed":true}`},
	} {
		k.apply("kind: hook\nname: github\nverify: {scheme: github, secret: \"${GITHUB_SECRET}\"}\njob: {task: log, lane: l, payload: " + c.payload + "}\n")
		k.expect(c.payload, http.StatusAccepted, request(fmt.Sprint(i), opened))
		list := k.effects()
		if got := list[len(list)-1]; string(got.Payload) != c.want || got.Lane != "l" {
			t.Errorf("%s is %s", c.payload, got.Payload)
		}
	}
	k.apply("kind: hook\nname: github\nverify: {scheme: github, secret: \"${GITHUB_SECRET}\"}\njob: {task: log, payload: delivery}\n")
	k.expect("delivery", http.StatusAccepted, request("d9", opened))
	list := k.effects()
	var whole struct {
		ID, Hook string
		Headers  map[string]string
		Body     json.RawMessage
	}
	if err := json.Unmarshal(list[len(list)-1].Payload, &whole); err != nil || whole.ID != "d9" || whole.Hook != "github" || whole.Headers["X-Github-Event"] != "issues" || string(whole.Body) != opened {
		t.Errorf("the delivery is %s", list[len(list)-1].Payload)
	}
	k.apply("kind: hook\nname: github\nverify: {scheme: github, secret: \"${GITHUB_SECRET}\"}\njob: {task: log, payload: body:missing}\n")
	k.expect("nothing there", http.StatusAccepted, request("d10", opened))
	if d := k.deliveries("github", hookstore.Pending); len(d) != 1 || d[0].Reason != "the body has nothing at body:missing" {
		t.Errorf("it is kept as %+v", d)
	}
}

func TestSlackWantsItsChallengeBack(t *testing.T) {
	k := newKit(t, sqlite(t))
	k.apply("kind: hook\nname: slack\nverify: {scheme: slack, secret: \"${GITHUB_SECRET}\"}\njob: {task: log}\n")
	body := `{"type":"url_verification","challenge":"abc"}`
	send := func(body string) *http.Request {
		at := fmt.Sprint(time.Now().Unix())
		r := httptest.NewRequest(http.MethodPost, "/hooks/slack", strings.NewReader(body))
		signed(r, secret, "v0:"+at+":"+body)
		r.Header.Set("X-Slack-Signature", "v0="+strings.TrimPrefix(r.Header.Get("X-Hub-Signature-256"), "sha256="))
		r.Header.Set("X-Slack-Request-Timestamp", at)
		return r
	}
	if w := k.expect("a challenge", http.StatusOK, send(body)); strings.TrimSpace(w.Body.String()) != `{"challenge":"abc"}` {
		t.Errorf("the answer is %s", w.Body)
	}
	forged := send(body)
	forged.Header.Set("X-Slack-Signature", "v0=00")
	k.expect("a forged challenge", http.StatusUnauthorized, forged)
	if len(k.effects()) != 0 {
		t.Error("it had an effect")
	}
	k.expect("an event", http.StatusAccepted, send(`{"event_id":"Ev1","type":"event_callback"}`))
	k.expect("the same event", http.StatusOK, send(`{"event_id":"Ev1","type":"event_callback"}`))
}
