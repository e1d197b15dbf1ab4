package cli

import (
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
)

func tokenAPI(t *testing.T) *fake {
	return newFake(t, map[string]fakeJSON{
		"POST /api/v1/tokens": {201, `{"id":"t1","name":"robot","token":"pawl_secret"}`},
		"GET /api/v1/tokens": {200, `{"items":[{"id":"t1","name":"robot","scopes":["jobs:write"],"createdAt":"2026-01-01T00:00:00Z"},` +
			`{"id":"t2","name":"old","scopes":[],"revokedAt":"2026-01-01T00:00:00Z"},{"id":"t3","name":"stale","expiresAt":"2026-01-01T00:00:00Z"}]}`},
		"GET /api/v1/tokens/t2":    {200, `{"id":"t2","name":"old"}`},
		"DELETE /api/v1/tokens/t1": {204, ``},
	})
}

func TestTokenIsPrintedAloneSoThatItCanBeCaptured(t *testing.T) {
	f := tokenAPI(t)
	r := f.run("token", "create", "robot", "--scope", "jobs:write,jobs:read", "--expires", "2027-01-01T00:00:00Z")
	r.expect(t, pawl.ExitDone, "only time", "pawl token revoke t1")
	if r.stdout != "pawl_secret\n" {
		t.Errorf("stdout: %q", r.stdout)
	}
	if got, want := f.bodies[0], `{"expiresAt":"2027-01-01T00:00:00.000Z","name":"robot","scopes":["jobs:write","jobs:read"]}`; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
	if r := f.run("token", "create", "robot", "-o", "json"); !strings.Contains(r.stdout, `"token": "pawl_secret"`) {
		t.Errorf("json: %s", r.stdout)
	}
}

func TestTokensAreListedWithTheirState(t *testing.T) {
	for _, args := range [][]string{{"token", "list"}, {"get", "tokens"}} {
		r := tokenAPI(t).run(args...)
		r.expect(t, pawl.ExitDone)
		for _, words := range []string{"t1   robot   active    jobs:write", "t2   old     revoked", "t3   stale   expired"} {
			if !strings.Contains(r.stdout, words) {
				t.Errorf("%v lacks %q:\n%s", args, words, r.stdout)
			}
		}
	}
}

func TestOneTokenIsShownByItsID(t *testing.T) {
	if r := tokenAPI(t).run("get", "token", "t2", "-o", "json"); !strings.Contains(r.stdout, `"name": "old"`) {
		t.Errorf("got %+v", r)
	}
}

func TestTokenIsRevokedByEitherCommand(t *testing.T) {
	for _, args := range [][]string{{"token", "revoke", "t1"}, {"delete", "token", "t1"}} {
		if r := tokenAPI(t).run(args...); r.code != pawl.ExitDone || r.stdout != "token t1 revoked\n" {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

func TestExpiryIsALengthOfTimeOrAnInstant(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{"90d": "2026-04-01T00:00:00.000Z", "12h": "2026-01-01T12:00:00.000Z", "2027-01-01T00:00:00Z": "2027-01-01T00:00:00.000Z"} {
		if at, err := expiry(text, now); err != nil || pawl.FormatTime(at) != want {
			t.Errorf("%s: %s, %v; want %s", text, pawl.FormatTime(at), err, want)
		}
	}
}
