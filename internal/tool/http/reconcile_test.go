package httptool

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

const reconciles = `timeout: 300ms
maxBody: 2000
reconcile:
  post: {get: "/orders?key={idempotencyKey}", found: items.0}
  put: {get: "{args.path}", absentAfter: 2h}
`

// what is not there counts as not happened after three times the timeout,
// and at least a minute.
func TestAbsenceFollowsTheTimeout(t *testing.T) {
	for timeout, want := range map[string]time.Duration{"1ms": time.Minute, "20s": time.Minute, "21s": 63 * time.Second, "10m": 30 * time.Minute} {
		s := connect(t, "http://127.0.0.1", "reconcile: {delete: {get: /x}}\ntimeout: "+timeout+"\n")
		for _, m := range s.Methods() {
			if m.Name == "delete" && m.AbsentAfter != want {
				t.Errorf("with a timeout of %s it is %v, want %v", timeout, m.AbsentAfter, want)
			}
		}
	}
}

func TestMethodsReconcileWhenTheDefinitionSaysHow(t *testing.T) {
	for _, m := range connect(t, "http://127.0.0.1", reconciles).Methods() {
		absence := map[string]time.Duration{"post": time.Minute, "put": 2 * time.Hour}[m.Name]
		if want := m.Name == "post" || m.Name == "put"; m.AbsentAfter != absence || m.Reconciles != want || m.Mutation == (m.Name == "get" || m.Name == "head") {
			t.Errorf("%+v", m)
		}
	}
}

// surface, Connection: what the answer to the question of reconcile means. An
// empty state is an error: ask later.
func TestReconcileByGet(t *testing.T) {
	const isJSON = "application/json"
	tests := map[string]struct {
		handle http.HandlerFunc
		method string
		state  connector.State
		result string
	}{
		"found":             {reply(200, isJSON, `{"items": [ {"id": 7.10, "b":"tok-4f/9+a z"} ]}`), "post", connector.Applied, `{"id": 7.10, "b":"[secret SHOP_TOKEN]"}`},
		"found, whatever":   {reply(206, "text/plain", `{"items":[0]}`), "post", connector.Applied, `0`},
		"not found, empty":  {reply(200, isJSON, `{"items":[]}`), "post", connector.Absent, ""},
		"not found, null":   {reply(200, isJSON, `{"items":[null]}`), "post", connector.Absent, ""},
		"not found, other":  {reply(200, isJSON, `{"count":0}`), "post", connector.Absent, ""},
		"not found, a name": {reply(200, isJSON, `{"items":{"1":1}}`), "post", connector.Absent, ""},
		"not found, a text": {reply(200, isJSON, `"items"`), "post", connector.Absent, ""},
		"no content":        {reply(204, "", ""), "post", connector.Absent, ""},
		"404":               {echoes(404), "post", connector.Absent, ""},
		"a login page":      {reply(200, "text/html", "<html>"), "post", "", ""},
		"nothing":           {reply(200, isJSON, ""), "post", "", ""},
		"half of it":        {says("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"items\":[]}"), "post", "", ""},
		"huge":              {reply(200, isJSON, strings.Repeat(" ", 2001)), "post", "", ""},
		"400":               {echoes(400), "post", "", ""},
		"401":               {echoes(401), "post", "", ""},
		"403":               {echoes(403), "post", "", ""},
		"410":               {echoes(410), "post", "", ""},
		"429":               {echoes(429), "post", "", ""},
		"500":               {echoes(500), "post", "", ""},
		"302, private":      {echoes(302, "Location", "http://10.0.0.1/"), "post", "", ""},
		"hang":              {hangs(""), "post", "", ""},
		"cut":               {says(""), "post", "", ""},

		"the answer is it":      {reply(200, isJSON, `{"id":7}`), "put", connector.Applied, `{"id":7}`},
		"the answer is a text":  {reply(201, "text/plain", "done "+token), "put", connector.Applied, `"done [secret SHOP_TOKEN]"`},
		"the answer is nothing": {reply(204, "", ""), "put", connector.Applied, `null`},
		"the answer is not":     {echoes(404), "put", connector.Absent, ""},
		"the answer is garbage": {reply(200, isJSON, `{`), "put", "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := serve(t, test.handle)
			s := connect(t, server.URL+"/v1", reconciles)
			got, err := s.Reconcile(t.Context(), callOf(t, test.method, object{"path": "/items/a%20b?x=1"}))
			if err != nil {
				if e := own(t, err); e.NotApplied {
					t.Errorf("the question failed, and the error says that the mutation did not happen: %+v", e)
				}
			}
			if got.State != test.state || string(got.Result) != test.result || (err != nil) != (test.state == "") {
				t.Errorf("Reconcile = %s %s, %v", got.State, got.Result, err)
			}
			want := map[string]string{"post": "/v1/orders?key=key-1%2F%C3%A4", "put": "/v1/items/a%20b"}[test.method]
			if asked := server.requests()[0]; asked.method != "GET" || asked.uri != want || asked.header.Get("Authorization") != "Bearer "+token || asked.header.Get("Idempotency-Key") != "" {
				t.Errorf("asked %+v, want %s", asked, want)
			}
		})
	}
}

func TestReconcileOfAnotherMethodIsAnError(t *testing.T) {
	_, err := connect(t, "http://127.0.0.1", reconciles).Reconcile(t.Context(), callOf(t, "delete", object{}))
	if e := own(t, err); e.Class != pawl.ClassInternal || e.NotApplied {
		t.Errorf("%+v", e)
	}
}

// What is in the arguments cannot change which path is asked for.
func TestPlaceholdersAreEscaped(t *testing.T) {
	tests := []struct {
		get  string
		args object
		want string // empty: refused
	}{
		{"/o/{args.body.id}", object{"body": object{"id": "a/b?c#d é+%"}}, "/o/a%2Fb%3Fc%23d%20%C3%A9%2B%25"},
		{"/o/{args.body.list.1}/x", object{"body": object{"list": []any{1, 2.50}}}, "/o/2.5/x"},
		{"/o?{args.query.q}={idempotencyKey}", object{"query": object{"q": "a&b=c"}}, "/o?a%26b%3Dc=key-1%2F%C3%A4"},
		{"/o?for={args.path}", object{"path": "/x?y&z"}, "/o?for=%2Fx%3Fy%26z"},
		{"/o{args.path}", object{"path": "/x"}, "/o%2Fx"},
		{"{args.path}/state", object{"path": "/x/7?y=1"}, "/x/7/state"},
		{"/o/{args.body.id}", object{"body": object{"id": ".."}}, ""},
		{"/o/{args.body.id}", object{"body": object{"id": ""}}, ""},
		{"/o/{args.body.id}", object{"body": object{"id": object{}}}, ""},
		{"/o/{args.body.id}", object{"body": object{"id": nil}}, ""},
		{"/o/{args.body.id}", object{"body": []any{}}, ""},
		{"/o/{args.body.id}", object{}, ""},
		{"{args.path}", object{}, ""},
		{"{args.path}", object{"path": "?x"}, ""},
	}
	for _, test := range tests {
		server := serve(t, reply(200, "", ""))
		s := connect(t, server.URL, "reconcile: {post: {get: '"+test.get+"'}}\n")
		c := callOf(t, "post", test.args)
		answer, err := s.Reconcile(t.Context(), c)
		if test.want != "" {
			if err != nil || server.last(t).uri != test.want {
				t.Errorf("%s, %v: asked %v (%v), want %s", test.get, test.args, server.requests(), err, test.want)
			}
			continue
		}
		if err == nil || own(t, err).NotApplied {
			t.Errorf("%s, %v: %v, %v", test.get, test.args, answer, err)
		}
		// What could not be asked about is not sent in the first place.
		if e := fail(t, s, "post", test.args); e.Class != pawl.ClassLogic || !e.NotApplied || len(server.requests()) != 0 {
			t.Errorf("%s, %v: post: %+v, sent %v", test.get, test.args, e, server.requests())
		}
	}
}

// pawl connections test: any answer shows that the service is there, unless it
// fails or refuses the credentials.
func TestTestTellsWhatItSaw(t *testing.T) {
	tests := map[string]struct {
		handle http.HandlerFunc
		class  pawl.Class // empty: it works
	}{
		"200": {echoes(200), ""}, "404": {echoes(404), ""}, "429": {echoes(429), ""}, "huge": {reply(200, "", strings.Repeat("x", 3000)), ""},
		"401": {echoes(401), pawl.ClassAuth}, "403": {echoes(403), pawl.ClassPermission}, "500": {echoes(500), pawl.ClassTransient},
		"hang": {hangs(""), pawl.ClassTransient}, "302": {echoes(302, "Location", "http://10.0.0.1/"), pawl.ClassPermission},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := serve(t, test.handle)
			s := connect(t, server.URL+"/v1", "timeout: 300ms\nmaxBody: 2000\ntest: {get: '/health?deep=1'}\n")
			saw, err := s.Test(t.Context())
			if test.class != "" {
				if e := own(t, err); e.Class != test.class {
					t.Errorf("%+v", e)
				}
				return
			}
			if err != nil || !strings.Contains(saw, ": GET /v1/health was answered ") || server.last(t).uri != "/v1/health?deep=1" {
				t.Errorf("%q, %v; asked %+v", saw, err, server.last(t))
			}
		})
	}
	server := serve(t, echoes(200))
	if saw, err := connect(t, server.URL+"/v1/", "").Test(t.Context()); err != nil || server.last(t).uri != "/v1/" {
		t.Errorf("%q, %v; asked %+v", saw, err, server.last(t))
	}
}
