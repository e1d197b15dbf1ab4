package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
)

const accountID = "7d9f0c1a-2222-5c3a-9d2e-3f1a2b4c5d6e"

// accountAPI is a server with one account.
func accountAPI(t *testing.T) *fake {
	t.Helper()
	today := time.Now().UTC().Format(time.DateOnly)
	account := `{"id":"` + accountID + `","ownerUserId":"u1","name":"default","balanceUsd":10.25,"keyRef":"${TEAM_KEY}","reservedUsd":0.5,` +
		`"days":[{"day":"` + today + `","amountUsd":0.75,"receipts":2},{"day":"2026-01-01","amountUsd":9,"receipts":1}],"createdAt":"2026-01-01T00:00:00.000Z"}`
	plain := `{"id":"a2","ownerUserId":"u2","name":"default","balanceUsd":null,"keyRef":null,"reservedUsd":0,"days":[],"createdAt":"2026-01-01T00:00:00.000Z"}`
	return newFake(t, map[string]fakeJSON{
		"GET /api/v1/billing/accounts":                {200, `{"items":[` + account + `,` + plain + `]}`},
		"PATCH /api/v1/billing/accounts/default":      {200, account},
		"PATCH /api/v1/billing/accounts/" + accountID: {200, plain},
		"PATCH /api/v1/billing/accounts/foreign":      {403, "forbidden"},
	})
}

func TestAccountsAreListed(t *testing.T) {
	f := accountAPI(t)
	r := f.run("get", "accounts")
	r.expect(t, pawl.ExitDone)
	lines := strings.Split(r.stdout, "\n")
	if got := strings.Fields(lines[0]); !slices.Equal(got, []string{"ID", "NAME", "BALANCE", "RESERVED", "SPENT", "TODAY", "KEY"}) {
		t.Errorf("%v", got)
	}
	for i, words := range [][]string{{accountID, "default", "10.25 USD", "0.5 USD", "0.75 USD", "${TEAM_KEY}"}, {"a2", "default", "not prepaid", "0", "-"}} {
		for _, w := range words {
			if !strings.Contains(lines[i+1], w) {
				t.Errorf("%q lacks %q", lines[i+1], w)
			}
		}
	}
	f.says([]string{"get", "accounts", "--all"}, "OWNER", "u1", "u2")
	if !strings.HasSuffix(f.requests(), "/api/v1/billing/accounts?all=true&limit=100") {
		t.Errorf("asked %s", f.requests())
	}
	f.says([]string{"get", "accounts", "-o", "json"}, `"keyRef": "${TEAM_KEY}"`)
	f.run("get", "account", "default").expect(t, pawl.ExitUsage, "pawl get accounts")
	if r := f.run("__complete", "account", "set", ""); !strings.HasPrefix(r.stdout, "default\n") {
		t.Errorf("completed %q", r.stdout)
	}
}

// C-03: only what is given is sent; null clears.
func TestAccountIsSet(t *testing.T) {
	for args, want := range map[string][3]string{
		"default --key ${TEAM_KEY} --balance 10.250": {"default", `{"balanceUsd":10.25,"keyRef":"${TEAM_KEY}"}`, "account default: key ${TEAM_KEY}, 10.25 USD left\n"},
		accountID + " --no-key --no-balance":         {accountID, `{"balanceUsd":null,"keyRef":null}`, "account " + accountID + ": no key, not prepaid\n"},
		"default --balance 0":                        {"default", `{"balanceUsd":0}`, ""},
		"default --timezone Europe/Berlin":           {"default", `{"timezone":"Europe/Berlin"}`, ""},
		"default --no-key":                           {"default", `{"keyRef":null}`, ""},
		"default --no-balance --key ${K}":            {"default", `{"balanceUsd":null,"keyRef":"${K}"}`, ""},
	} {
		f := accountAPI(t)
		r := f.run(append([]string{"account", "set"}, strings.Fields(args)...)...)
		r.expect(t, pawl.ExitDone)
		if f.requests() != "PATCH /api/v1/billing/accounts/"+want[0] || strings.Join(f.sent(), "") != want[1] || want[2] != "" && r.stdout != want[2] {
			t.Errorf("%s: asked %s, sent %v, said %s", args, f.requests(), f.sent(), r.stdout)
		}
	}
	f := accountAPI(t)
	f.says([]string{"account", "set", "default", "--no-key", "-o", "json"}, `"id": "`+accountID+`"`)
	f.run("account", "set", "foreign", "--no-key").expect(t, pawl.ExitNotAllowed, "refused because of forbidden")
}

// A key on the command line is mostly a reference that the shell replaced: it is
// neither sent nor said again.
func TestAccountSetRefusesBeforeItAsks(t *testing.T) {
	const literal = "sk-live-31415926"
	f := accountAPI(t)
	for args, words := range map[string]string{
		"":                                 "",
		"default":                          "there is nothing to set",
		"default --key " + literal:         "single quotes",
		"default --key=":                   "must be exactly one reference",
		"default --key ${A}" + literal:     "must be exactly one reference",
		"default --key ${A} --no-key":      "cannot go together",
		"default --balance 1 --no-balance": "cannot go together",
		"default --balance -1":             "--balance",
		"default --balance=":               "--balance",
		"default --balance lots":           "--balance",
		"default other --no-key":           "",
	} {
		r := f.run(append([]string{"account", "set"}, strings.Fields(args)...)...)
		r.expect(t, pawl.ExitUsage, words)
		if strings.Contains(r.stdout+r.stderr, literal) {
			t.Errorf("%s: said again: %s", args, r.stderr)
		}
	}
	if f.requests() != "" {
		t.Errorf("asked %s", f.requests())
	}
}

// C-03, C-35: the commands, the API and the executors of this version fit each
// other: a key of the server's environment reaches the graph.
func TestKeyOfAnAccountFromTheCommandToTheGraph(t *testing.T) {
	t.Setenv("PAWL_TEST_TEAM_KEY", "vk-31415926")
	var mu sync.Mutex
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"ok":true,"usage":[{"unit":"u1","costUsd":0.5}]}`)
	}))
	defer s.Close()
	tools := folder(t, map[string]string{"agents.yaml": "kind: executor\nname: agents\ntype: http\ncallerKey: {}\ngraphs: {poet: {url: \"" + s.URL + "/poet\"}}\n"})
	h := serve(t, "--allow-private", "127.0.0.0/8", "--connection-dir", tools)
	defer h.end()
	h.write("poet.yaml", strings.Replace(poetYAML, "langgraph:poet", "agents:poet", 1))
	h.shows([]string{"account", "set", "default", "--key", "${PAWL_TEST_TEAM_KEY}", "--balance", "10"}, "account default: key ${PAWL_TEST_TEAM_KEY}, 10 USD left")
	h.shows([]string{"apply", "-f", "."}, "schedule morning-poet created\n")
	h.shows([]string{"run", "schedule", "morning-poet"}, "schedule morning-poet will run now")
	h.until("success", "get", "slots", "morning-poet", "--trigger", "manual")
	h.shows([]string{"get", "accounts", "--all"}, "9.5 USD", "0.5 USD", "${PAWL_TEST_TEAM_KEY}")
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(got, []string{"Bearer vk-31415926"}) {
		t.Errorf("the graph was called with %q", got)
	}
}
