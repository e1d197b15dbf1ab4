package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// plainSchedule is the body of a schedule that runs something without a grant.
func plainSchedule(name string, run map[string]any) map[string]any {
	return map[string]any{"name": name, "run": run, "cron": "0 9 1 1 *", "timezone": "UTC"}
}

// surface-2, 1: only folders bring commands, or an admin if the server allows it;
// nobody else ever. The same for what refers to variables of the server.
func TestWhoMayBringACommand(t *testing.T) {
	command := plainSchedule("c", map[string]any{"command": []any{"/bin/true"}})
	secret := plainSchedule("s", map[string]any{"url": "https://example.com", "headers": map[string]any{"Authorization": "Bearer ${SECRET}"}})
	call := plainSchedule("u", map[string]any{"url": "https://example.com"})
	both(t, func(r *rig) {
		admin, operator := r.admin, r.token("ada", userstore.RoleOperator, "write")
		narrow := r.token("bob", userstore.RoleOperator, "schedules:write")
		for _, c := range []struct {
			name    string
			allow   bool
			token   string
			body    map[string]any
			refused string
		}{
			{"an admin, not allowed", false, admin, command, ReasonCommands},
			{"an operator, not allowed", false, operator, command, ReasonCommands},
			{"an operator, allowed", true, operator, command, ReasonCommands},
			{"an admin, allowed", true, admin, command, ""},
			{"a secret, not allowed", false, admin, secret, ReasonCommands},
			{"a secret of an operator", true, operator, secret, ReasonCommands},
			{"a secret of an admin", true, admin, secret, ""},
			{"a URL of anybody", false, narrow, call, ""},
			{"a job without the right", false, narrow, plainSchedule("j", map[string]any{"job": map[string]any{"task": "echo"}}), "forbidden"},
			{"a job with the right", false, operator, plainSchedule("j", map[string]any{"job": map[string]any{"task": "echo"}}), ""},
		} {
			r.api.cfg.AllowCommands = c.allow
			name := c.body["name"].(string)
			for _, try := range []struct{ method, path string }{{"PUT", "/api/v1/schedules/by-name/" + name + "?dryRun=true"}, {"PUT", "/api/v1/schedules/by-name/" + name}} {
				answer := r.do(try.method, try.path, c.body, "Authorization", "Bearer "+c.token)
				switch {
				case c.refused != "":
					answer.problem(http.StatusForbidden, c.refused)
				case answer.status >= 300:
					t.Errorf("%s: %s", c.name, answer.body)
				}
			}
			if c.refused != "" {
				r.do("POST", "/api/v1/schedules", c.body, "Authorization", "Bearer "+c.token).problem(http.StatusForbidden, c.refused)
			}
		}
		r.api.cfg.AllowCommands = false
		var page client.SchedulePage
		r.do("GET", "/api/v1/schedules?name=c", nil).want(200).into(&page)
		c := page.Items[0]
		if c.GraphID != "" || c.ExecutionGrantID != "" || c.Run == nil || c.Run.Command[0] != "/bin/true" {
			t.Errorf("%+v", c)
		}
		// What it has may be kept, paused and run; another one may not be brought.
		path := "/api/v1/schedules/" + c.ID
		r.do("PATCH", path, map[string]any{"cron": "0 8 1 1 *"}).want(200)
		r.do("PATCH", path, map[string]any{"run": map[string]any{"command": []any{"/bin/false"}}}).problem(http.StatusForbidden, ReasonCommands)
		r.do("PATCH", path, map[string]any{"graphId": "pawl:command", "input": map[string]any{"command": []any{"/bin/false"}}}).problem(422, "invalid")
		r.do("PATCH", path, map[string]any{"input": map[string]any{"command": []any{"/bin/false"}}}).problem(422, "invalid")
		r.do("POST", path+"/run", nil).want(http.StatusAccepted)
	})
}

// Lists tell the end of what commands wrote and the beginning of answers, with their
// headers if those are short; one slot has all of it.
func TestListsShortenOutputs(t *testing.T) {
	long := strings.Repeat("x", shortOutput) + "end"
	short := shortened(client.PlainOutput{Stdout: long, Stderr: long, Body: "begin" + long, Headers: map[string]string{"X-Trace": "t1"}}, shortOutput)
	if len(short.Stdout) != shortOutput || !strings.HasSuffix(short.Stdout, "end") || len(short.Stderr) != shortOutput || !strings.HasPrefix(short.Body, "begin") || !short.Truncated {
		t.Errorf("%+v", short)
	}
	if short.Headers["X-Trace"] != "t1" {
		t.Errorf("short headers are left out: %+v", short.Headers)
	}
	if many := shortened(client.PlainOutput{Headers: map[string]string{"X-Long": long}}, shortOutput); many.Headers != nil || !many.Truncated {
		t.Errorf("%+v", many)
	}
	if whole := shortened(client.PlainOutput{Stdout: long}, 0); whole.Stdout != long || whole.Truncated {
		t.Errorf("%d bytes", len(whole.Stdout))
	}
}

// A dry run may take what comes with it to be there; what is kept may not, and nothing
// else can be assumed.
func TestOnlyADryRunAssumes(t *testing.T) {
	both(t, func(r *rig) {
		body := plainSchedule("n", map[string]any{"url": "https://example.com"})
		body["needs"], body["except"] = []any{map[string]any{"source": "prices", "maxAge": "1h"}}, []any{"calendar:holidays"}
		const path = "/api/v1/schedules/by-name/n?assume="
		says := func(path, words string) {
			t.Helper()
			if p := r.do("PUT", path, body).problem(422, "invalid"); len(p.Errors) != 1 || !strings.Contains(p.Errors[0].Message, words) {
				t.Errorf("%s: %+v", path, p)
			}
		}
		r.do("PUT", path+"source:prices,calendar:holidays&dryRun=true", body).want(http.StatusOK)
		says(path+"source:prices,calendar:holidays", "dry runs")
		says(path+"source:prices&dryRun=true", `there is no calendar "holidays"`)
		says(path+"calendar:holidays&dryRun=true", `there is no source "prices"`)
		for _, other := range []string{"workflow:w", "source:", "prices"} {
			says(path+other+"&dryRun=true", "source:NAME")
		}
		r.do("PUT", "/api/v1/schedules/by-name/n", body).problem(422, "invalid")
		var page client.SchedulePage
		if r.do("GET", "/api/v1/schedules?name=n", nil).want(200).into(&page); len(page.Items) != 0 {
			t.Errorf("%+v", page.Items)
		}
	})
}
