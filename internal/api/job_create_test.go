package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// Every fault is named with its place, and nothing of a bad request is stored.
func TestBadJobsAreRefused(t *testing.T) {
	both(t, func(r *rig) {
		long := strings.Repeat("x", 257)
		year := time.Now().Year()
		for _, c := range []struct {
			name, body string
			status     int
			code       string
			pointers   string // of the faults, joined
		}{
			{"no body", "", 400, "malformed", ""},
			{"not JSON", `{"task": echo}`, 400, "malformed", ""},
			{"cut off", `{"task": "echo"`, 400, "malformed", ""},
			{"something behind it", `{"task":"echo"} x`, 400, "malformed", ""},
			{"two values", `{"task":"echo"}{"task":"echo"}`, 400, "malformed", ""},
			{"a key twice", `{"task":"echo","task":"plain"}`, 400, "malformed", ""},
			{"a key twice, spelled differently", `{"task":"echo","t\u0061sk":"plain"}`, 400, "malformed", ""},
			{"a key twice in the payload", `{"task":"echo","payload":{"a":[{"b":1,"b":2}]}}`, 400, "malformed", ""},
			{"not UTF-8", "{\"task\":\"echo\",\"payload\":\"\xff\"}", 400, "malformed", ""},
			{"an array", `[]`, 422, "invalid", ""},
			{"a string", `"echo"`, 422, "invalid", ""},
			{"null", `null`, 422, "invalid", ""},
			{"empty", `{}`, 422, "invalid", "/task"},
			{"task of another type", `{"task":7}`, 422, "invalid", "/task"},
			{"task null", `{"task":null}`, 422, "invalid", "/task"},
			{"task empty", `{"task":""}`, 422, "invalid", "/task"},
			{"task unknown", `{"task":"ecko"}`, 422, "invalid", "/task"},
			{"task internal", `{"task":"pawl.prune"}`, 422, "invalid", "/task"},
			{"field unknown", `{"task":"echo","runat":"2030-01-01T00:00:00Z"}`, 422, "invalid", "/runat"},
			{"field in other case", `{"Task":"echo"}`, 422, "invalid", "/Task /task"},
			{"field with odd name", `{"task":"echo","a/b~c":1}`, 422, "invalid", "/a~1b~0c"},
			{"runAt no time", `{"task":"echo","runAt":"tomorrow"}`, 422, "invalid", "/runAt"},
			{"runAt without offset", `{"task":"echo","runAt":"2030-01-01T00:00:00"}`, 422, "invalid", "/runAt"},
			{"runAt a date", `{"task":"echo","runAt":"2030-01-01"}`, 422, "invalid", "/runAt"},
			{"runAt a number", `{"task":"echo","runAt":1893456000}`, 422, "invalid", "/runAt"},
			{"runAt no day", `{"task":"echo","runAt":"2030-02-30T00:00:00Z"}`, 422, "invalid", "/runAt"},
			{"runAt too early", `{"task":"echo","runAt":"1999-12-31T23:59:59Z"}`, 422, "invalid", "/runAt"},
			{"runAt too late", fmt.Sprintf(`{"task":"echo","runAt":"%d-01-01T00:00:00Z"}`, year+12), 422, "invalid", "/runAt"},
			{"runAt and delay", `{"task":"echo","runAt":"2030-01-01T00:00:00Z","delay":"1h"}`, 422, "invalid", "/delay"},
			{"delay without unit", `{"task":"echo","delay":"90"}`, 422, "invalid", "/delay"},
			{"delay negative", `{"task":"echo","delay":"-5m"}`, 422, "invalid", "/delay"},
			{"delay too long", `{"task":"echo","delay":"4000d"}`, 422, "invalid", "/delay"},
			{"key empty", `{"task":"echo","key":""}`, 422, "invalid", "/key"},
			{"key too long", `{"task":"echo","key":"` + long + `"}`, 422, "invalid", "/key"},
			{"key with control character", `{"task":"echo","key":"a\u0000b"}`, 422, "invalid", "/key"},
			{"key with line break", `{"task":"echo","key":"a\nb"}`, 422, "invalid", "/key"},
			{"key with space around", `{"task":"echo","key":" a"}`, 422, "invalid", "/key"},
			{"key of direction marks", `{"task":"echo","key":"a\u202eb"}`, 422, "invalid", "/key"},
			{"lane too long", `{"task":"echo","lane":"` + long + `"}`, 422, "invalid", "/lane"},
			{"lane with tab", `{"task":"echo","lane":"a\tb"}`, 422, "invalid", "/lane"},
			{"key and lane", `{"task":"echo","lane":"a\tb","key":"a "}`, 422, "invalid", "/key /lane"},
			{"keyMode unknown", `{"task":"echo","key":"k","keyMode":"earliest"}`, 422, "invalid", "/keyMode"},
			{"keyMode without key", `{"task":"echo","keyMode":"keep"}`, 422, "invalid", "/keyMode"},
			{"priority too high", `{"task":"echo","priority":2}`, 422, "invalid", "/priority"},
			{"priority too low", `{"task":"echo","priority":-2}`, 422, "invalid", "/priority"},
			{"priority broken", `{"task":"echo","priority":0.5}`, 422, "invalid", "/priority"},
			{"priority a string", `{"task":"echo","priority":"1"}`, 422, "invalid", "/priority"},
			{"priority not written as whole", `{"task":"echo","priority":1e0}`, 422, "invalid", "/priority"},
			{"maxAttempts zero", `{"task":"echo","maxAttempts":0}`, 422, "invalid", "/maxAttempts"},
			{"maxAttempts too many", `{"task":"echo","maxAttempts":1001}`, 422, "invalid", "/maxAttempts"},
			{"several", `{"task":"echo","priority":5,"maxAttempts":-1,"zzz":1}`, 422, "invalid", "/maxAttempts /priority /zzz"},
			{"payload that the task refuses", `{"task":"check","payload":{}}`, 422, "invalid", "/payload/name"},
			{"no payload where the task wants one", `{"task":"check"}`, 422, "invalid", "/payload/name"},
			{"payload that the task refuses bluntly", `{"task":"blunt"}`, 422, "invalid", "/payload"},
			{"payload too large", `{"task":"echo","payload":"` + strings.Repeat("x", testMaxPayload) + `"}`, 413, "too_large", "/payload"},
			{"body too large", `{"task":"echo","payload":"` + strings.Repeat("x", testMaxPayload+bodyRoom) + `"}`, 413, "too_large", ""},
		} {
			t.Run(c.name, func(t *testing.T) {
				p := r.do("POST", "/api/v1/jobs", c.body)
				p.t = t
				told := p.problem(c.status, c.code)
				var pointers []string
				for _, f := range told.Errors {
					pointers = append(pointers, f.Pointer)
					if f.Message == "" || strings.HasPrefix(f.Message, "expected") {
						t.Errorf("message %q", f.Message)
					}
				}
				slices.Sort(pointers)
				if got := strings.Join(slices.Compact(pointers), " "); got != c.pointers {
					t.Errorf("faults at %q, want %q: %s", got, c.pointers, p.body)
				}
			})
		}
		if n := r.count(`select (select count(*) from jobs) + (select count(*) from job_history) + (select count(*) from idempotency_keys)`); n != 0 {
			t.Errorf("%d rows were stored", n)
		}
	})
}

// A hint says what to do, not only what is wrong.
func TestHintsHelp(t *testing.T) {
	both(t, func(r *rig) {
		for body, want := range map[string]string{
			`{"task":"ecko"}`:                       `Did you mean "echo"? The tasks are block, blunt, check, echo, fail, plain.`,
			`{"task":"something else"}`:             "The tasks are block, blunt, check, echo, fail, plain.",
			`{"task":"echo","runat":"x"}`:           `Did you mean "runAt"? The fields are delay, key, keyMode, lane, maxAttempts, payload, priority, runAt, task.`,
			`{"task":"echo","runAt":"tomorrow"}`:    "Use RFC 3339 with an offset, such as 2030-01-31T09:00:00Z.",
			`{"task":"echo","keyMode":"keep"}`:      "Send a key, or leave keyMode out.",
			`{"task":"check","payload":{"Name":1}}`: "Send a name.",
		} {
			if p := r.do("POST", "/api/v1/jobs", body).problem(422, "invalid"); p.Hint != want {
				t.Errorf("%s: hint %q, want %q", body, p.Hint, want)
			}
		}
		p := r.do("POST", "/api/v1/jobs", "{\n  \"task\": \"echo\",\n  \"payload\": {\"ä\": x}\n}").problem(400, "malformed")
		if want := "line 3, column 20 (byte 41): invalid character 'x' looking for beginning of value"; !strings.Contains(p.Detail, want) {
			t.Errorf("detail %q, want %q", p.Detail, want)
		}
	})
}

func TestOnlyJSONIsRead(t *testing.T) {
	both(t, func(r *rig) {
		for _, ct := range []string{"text/plain", "application/x-www-form-urlencoded", "application/xml", "multipart/form-data; boundary=x", "nonsense"} {
			r.do("POST", "/api/v1/jobs", `{"task":"echo"}`, "Content-Type", ct).problem(http.StatusUnsupportedMediaType, "unsupported_media")
		}
		for _, ct := range []string{"application/json", "application/json; charset=utf-8", "APPLICATION/JSON", ""} {
			r.do("POST", "/api/v1/jobs", `{"task":"echo","delay":"1h"}`, "Content-Type", ct).want(http.StatusCreated)
		}
	})
}

// What is exactly as large as allowed is allowed.
func TestPayloadOfTheLargestSizeIsTaken(t *testing.T) {
	both(t, func(r *rig) {
		r.do("POST", "/api/v1/jobs", `{"task":"echo","delay":"1h","payload":"`+strings.Repeat("x", testMaxPayload-2)+`"}`).want(http.StatusCreated)
		r.do("POST", "/api/v1/jobs", `{"task":"echo","delay":"1h","payload":"`+strings.Repeat("x", testMaxPayload-1)+`"}`).problem(413, "too_large")
	})
}
