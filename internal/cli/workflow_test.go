package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"

	pawl "github.com/pawlrun/pawl"
)

const (
	runID    = "0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e"
	firstRun = "0192f0c1-0000-7c3a-9d2e-3f1a2b4c5d6e"
	inputID  = "in_9d5e96a3ee1dd54fdc920bef83db0a58"

	mailLane = `{"kind":"workflow","name":"mail-to-sheet","id":"w1","status":"Idle","issue":null,"schedule":"Every 5 minutes",` +
		`"nextAt":"2999-01-01T00:00:00.000Z","lastActivity":{"at":"2026-01-01T00:00:00.000Z","text":"Done: Add a row for Ann"},` +
		`"pending":2,"paused":false,"labels":{"team":"data","tier":"1"},"later":"a field of a later version"}`
	billLane = `{"kind":"workflow","name":"bills","id":"w2","status":"Needs attention","issue":"The script failed; deploy a corrected version: no such column.",` +
		`"schedule":"Daily at 09:00","nextAt":null,"lastActivity":{"at":"2026-01-01T00:00:00.000Z","text":"Deployed"},"pending":0,"paused":false,"labels":{"team":"money"}}`

	mailWorkflow = `{"kind":"workflow","name":"mail-to-sheet","id":"w1","status":"Idle","issue":null,"schedule":"Every 5 minutes",` +
		`"nextAt":"2999-01-01T00:00:00.000Z","lastActivity":{"at":"2026-01-01T00:00:00.000Z","text":"Done: Add a row for Ann"},` +
		`"pending":2,"paused":false,"labels":{"team":"data"},"desired":"active","version":"0123456789abcdef","versionNumber":3,` +
		`"filename":"mail.workflow.ts","script":"export default {}","config":{"topics":["mail.received","row.added"],` +
		`"producers":[{"name":"pollMail","publishes":["mail.received"],"schedule":{"interval":"5m"}}],` +
		`"consumers":[{"name":"addRow","subscribe":["mail.received"],"publishes":["row.added"],"hasMutate":true,"hasNext":true}]},` +
		`"producers":[{"name":"pollMail","schedule":"Every 5 minutes","nextRunAt":"2999-01-01T00:00:00.000Z","lastRunAt":null,"requestedAt":null}],` +
		`"handlers":[{"name":"addRow","type":"consumer","hasState":true,"wakeAt":"2999-01-01T00:00:00.000Z"}],` +
		`"createdAt":"2026-01-01T00:00:00.000Z","deployedAt":"2026-01-02T00:00:00.000Z"}`

	failedRun = `{"id":"` + runID + `","kind":"workflow","lane":"mail-to-sheet","handler":"addRow","handlerType":"consumer","trigger":"event","retryOf":"` + firstRun + `",` +
		`"phase":"mutating","status":"paused:transient","attempt":2,"scheduledFor":null,"prepareResult":{"data":{"from":"ann"}},` +
		`"mutation":{"tool":"sheet","method":"append","arguments":{"row":["ann"]},"state":"failed","result":null},` +
		`"error":{"code":"http_503","message":"sheet answered 503","class":"transient"},"scriptVersion":"0123456789abcdef",` +
		`"createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:02.000Z","startedAt":"2026-01-01T00:00:00.000Z","endedAt":"2026-01-01T00:00:02.000Z"}`
	runBasics  = `"kind":"workflow","lane":"mail-to-sheet","handler":"addRow","handlerType":"consumer","phase":"mutating"`
	runDetails = `{"id":"` + runID + `",` + runBasics + `,"trigger":"event","retryOf":"` + firstRun + `","status":"paused:transient","attempt":2,` +
		`"prepareResult":{"data":{"from":"ann"}},"error":{"code":"http_503","message":"sheet answered 503","class":"transient"},` +
		`"createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:02.000Z","startedAt":"2026-01-01T00:00:00.000Z","endedAt":"2026-01-01T00:00:02.000Z",` +
		`"chain":[{"id":"` + runID + `",` + runBasics + `,"status":"paused:transient","attempt":2,"error":{"message":"sheet answered 503"}},` +
		`{"id":"` + firstRun + `",` + runBasics + `,"status":"crashed","attempt":1,"error":null}],` +
		`"mutations":[{"tool":"sheet","method":"append","title":"Add a row for Ann","arguments":{"row":["ann"]},"state":"failed","result":null,"createdAt":"2026-01-01T00:00:01.000Z"}],` +
		`"logs":[{"phase":"preparing","at":"2026-01-01T00:00:00.000Z","level":"info","text":"one mail\u001b[2J"}]}`

	sheetCall = `{"id":"o1","runId":"` + runID + `","tool":"sheet","method":"append","title":"Add a row for Ann","arguments":{"row":["ann"]},"state":"needs_reconcile","result":null,"inputs":["` + inputID + `"],"at":"2026-01-01T00:00:00.000Z"}`
	annsMail  = `{"id":"` + inputID + `","workflow":"mail-to-sheet","source":"mail","type":"message","externalId":"m1","title":"Mail from Ann: Hello","status":"pending","createdAt":"2026-01-01T00:00:00.000Z","createdBy":"` + runID + `","outputs":[` + sheetCall + `]`
	mailEvent = `{"topic":"mail.received","messageId":"m1","payload":{"from":"ann"},"status":"reserved","causedBy":["` + inputID + `"],"attempt":1,"createdAt":"2026-01-01T00:00:00.000Z","createdBy":"` + firstRun + `","reservedBy":"` + runID + `"}`
)

func workflowAPI(t *testing.T) *fake {
	return newFake(t, map[string]fakeJSON{
		"GET /api/v1/workflows":                        {200, `{"items":[` + billLane + `,` + mailLane + `]}`},
		"GET /api/v1/workflows/mail-to-sheet":          {200, mailWorkflow},
		"DELETE /api/v1/workflows/mail-to-sheet":       {204, ``},
		"DELETE /api/v1/workflows/bills":               {409, `run_active`},
		"POST /api/v1/workflows/mail-to-sheet/run":     {202, `{"name":"mail-to-sheet","requested":true}`},
		"POST /api/v1/workflows/bills/run":             {409, `backing_off`},
		"POST /api/v1/workflows/mail-to-sheet/pause":   {200, mailWorkflow},
		"POST /api/v1/workflows/mail-to-sheet/resume":  {200, mailWorkflow},
		"POST /api/v1/workflows/bills/pause":           {409, `conflict`},
		"POST /api/v1/workflows/mail-to-sheet/events":  {201, mailEvent},
		"POST /api/v1/workflows/bills/events":          {200, `{"status":"consumed","duplicate":true}`},
		"GET /api/v1/workflows/mail-to-sheet/inputs":   {200, `{"items":[` + annsMail + `}]}`},
		"GET /api/v1/workflows/mail-to-sheet/outputs":  {200, `{"items":[` + sheetCall + `]}`},
		"GET /api/v1/workflows/mail-to-sheet/events":   {200, `{"items":[` + mailEvent + `]}`},
		"GET /api/v1/inputs/" + inputID:                {200, annsMail + `,"events":[` + mailEvent + `]}`},
		"POST /api/v1/inputs/" + inputID + "/skip":     {200, annsMail + `}`},
		"GET /api/v1/lanes":                            {200, `{"items":[` + mailLane + `,` + billLane + `,{"kind":"source","name":"prices","labels":{"team":"data"}}]}`},
		"GET /api/v1/runs":                             {200, `{"items":[` + failedRun + `]}`},
		"GET /api/v1/runs/" + runID:                    {200, runDetails},
		"POST /api/v1/runs/" + runID + "/cancel":       {200, failedRun},
		"POST /api/v1/runs/" + firstRun + "/cancel":    {409, `sent_already`},
		"GET /api/v1/lanes/workflow/mail-to-sheet/why": {200, whyMail},
	})
}

// A-143..A-146: status, issue, next time and last activity, in words.
func TestWorkflowsAreListedWithWhatMatters(t *testing.T) {
	r := workflowAPI(t).run("get", "workflows")
	r.expect(t, pawl.ExitDone)
	want := "NAME            STATUS            NEXT"
	if !strings.HasPrefix(r.stdout, want) || strings.Contains(r.stdout, "SCHEDULE") {
		t.Errorf("titles:\n%s", r.stdout)
	}
	for _, w := range []string{"bills           Needs attention   -", "0         The script failed", "mail-to-sheet   Idle              in ", " ago: Done: Add a row for Ann"} {
		if !strings.Contains(r.stdout, w) {
			t.Errorf("lacks %q:\n%s", w, r.stdout)
		}
	}
	if wide := workflowAPI(t).run("get", "wf", "-o", "wide").stdout; !strings.Contains(wide, "Every 5 minutes") || !strings.Contains(wide, "team=data,tier=1") {
		t.Errorf("wide:\n%s", wide)
	}
	if one := workflowAPI(t).run("get", "workflow", "mail-to-sheet", "-o", "wide").stdout; !strings.Contains(one, "3 (0123456789ab)") {
		t.Errorf("one:\n%s", one)
	}
}

func TestEveryTableFitsAnOrdinaryTerminal(t *testing.T) {
	for _, args := range [][]string{
		{"get", "workflows"}, {"get", "lanes"}, {"get", "runs"}, {"get", "inputs", "mail-to-sheet"}, {"get", "outputs", "mail-to-sheet"},
		{"get", "events", "mail-to-sheet"}, {"next", "--hours", "87840"},
	} {
		c := workflowAPI(t).call()
		c.terminal, c.width, c.env["NO_COLOR"] = true, 80, "1"
		r := c.run(t, args...)
		r.expect(t, pawl.ExitDone)
		for line := range strings.SplitSeq(r.stdout, "\n") {
			if width := text.StringWidthWithoutEscSequences(line); width > 80 {
				t.Errorf("%v: %d columns: %s", args, width, line)
			}
		}
	}
}

func TestIdsAreNeverCut(t *testing.T) {
	for id, args := range map[string][]string{runID: {"get", "runs"}, inputID: {"get", "inputs", "mail-to-sheet"}} {
		c := workflowAPI(t).call()
		c.terminal, c.width = true, 80
		if r := c.run(t, args...); !strings.Contains(r.stdout, id) {
			t.Errorf("%v:\n%s", args, r.stdout)
		}
	}
}

func TestMachineOutputOfWorkflowsKeepsEveryField(t *testing.T) {
	var list struct {
		Items []map[string]any `json:"items"`
	}
	if err := json.Unmarshal([]byte(workflowAPI(t).run("get", "workflows", "-o", "json").stdout), &list); err != nil || len(list.Items) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	if list.Items[1]["later"] != "a field of a later version" {
		t.Errorf("got %v", list.Items[1])
	}
	if r := workflowAPI(t).run("get", "workflow", "mail-to-sheet", "-o", "yaml"); !strings.Contains(r.stdout, "script: export default {}\n") {
		t.Errorf("yaml:\n%s", r.stdout)
	}
}

func TestListsOfAWorkflow(t *testing.T) {
	tests := map[string]struct {
		args  []string
		asked string
		shows []string
	}{
		"inputs":        {[]string{"inputs", "mail-to-sheet", "--status", "pending"}, "/workflows/mail-to-sheet/inputs?limit=100&status=pending", []string{inputID, "pending", "Mail from Ann: Hello"}},
		"by flag":       {[]string{"inputs", "--workflow", "mail-to-sheet"}, "/workflows/mail-to-sheet/inputs?limit=100", []string{inputID}},
		"one input":     {[]string{"input", inputID}, "/inputs/" + inputID, []string{inputID, "mail"}},
		"outputs":       {[]string{"outputs", "mail-to-sheet"}, "/workflows/mail-to-sheet/outputs?limit=100", []string{"sheet.append", "needs_reconcile", runID}},
		"events":        {[]string{"events", "mail-to-sheet", "--topic", "mail.received", "--input", "in_1"}, "/workflows/mail-to-sheet/events?input=in_1&limit=100&topic=mail.received", []string{"mail.received", "m1", "reserved", `{"from":"ann"}`}},
		"runs":          {[]string{"runs"}, "/runs?limit=100", []string{runID, "mail-to-sheet/addRow", "paused:transient", "mutating", "sheet answered 503"}},
		"runs filtered": {[]string{"runs", "--workflow", "mail-to-sheet", "--status", "failed:logic"}, "/runs?kind=workflow&lane=mail-to-sheet&limit=100&status=failed%3Alogic", []string{runID}},
		"runs of lane":  {[]string{"runs", "--kind", "source", "--lane", "x"}, "/runs?kind=source&lane=x&limit=100", []string{runID}},
		"one run":       {[]string{"run", runID}, "/runs/" + runID, []string{runID}},
		"lanes":         {[]string{"lanes", "--kind", "workflow"}, "/lanes?kind=workflow&limit=100", []string{"workflow", "mail-to-sheet", "bills", "source", "prices"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := workflowAPI(t)
			r := f.run(append([]string{"get"}, tt.args...)...)
			r.expect(t, pawl.ExitDone)
			if got, want := f.requests(), "GET /api/v1"+tt.asked; got != want {
				t.Errorf("asked %s, want %s", got, want)
			}
			for _, w := range tt.shows {
				if !strings.Contains(r.stdout, w) {
					t.Errorf("lacks %q:\n%s", w, r.stdout)
				}
			}
		})
	}
}

func TestSelectorAndNameChooseFromLists(t *testing.T) {
	f := workflowAPI(t)
	for _, tt := range []struct {
		args      []string
		has, lack string
	}{
		{[]string{"get", "lanes", "-l", "team=data"}, "prices", "bills"},
		{[]string{"get", "lanes", "-l", "team=data,tier=1"}, "mail-to-sheet", "prices"},
		{[]string{"get", "workflows", "-l", "team=money"}, "bills", "mail-to-sheet"},
		{[]string{"get", "lane", "bills"}, "bills", "mail-to-sheet"},
	} {
		r := f.run(tt.args...)
		r.expect(t, pawl.ExitDone)
		if !strings.Contains(r.stdout, tt.has) || strings.Contains(r.stdout, tt.lack) {
			t.Errorf("%v:\n%s", tt.args, r.stdout)
		}
	}
	f.run("get", "lane", "absent").expect(t, pawl.ExitNotFound, `there is no lane "absent"`)
	f.run("get", "lanes", "-l", "team=data", "--limit", "1").expect(t, pawl.ExitDone, "--limit 0 shows all")
	f.run("get", "lanes", "-l", "team=nobody").expect(t, pawl.ExitDone, "No lanes.")
}

func TestWhatIsNotThereExitsWith3(t *testing.T) {
	f := workflowAPI(t)
	for _, args := range [][]string{
		{"get", "workflow", "absent"}, {"get", "inputs", "absent"}, {"get", "run", "absent"}, {"get", "input", "in_absent"}, {"describe", "workflow", "absent"},
		{"describe", "run", "absent"}, {"run", "workflow", "absent"}, {"pause", "workflow", "absent"}, {"resume", "workflow", "absent"}, {"cancel", "absent"},
		{"skip", "in_absent"}, {"why", "workflow", "absent"}, {"publish", "absent", "t", "--id", "1"}, {"delete", "workflow", "absent", "--yes"},
	} {
		f.run(args...).expect(t, pawl.ExitNotFound, "there is no such thing")
	}
}

func TestNewCommandsNeedAServer(t *testing.T) {
	for _, args := range [][]string{
		{"get", "workflows"}, {"get", "workflows", "-w"}, {"get", "inputs", "x"}, {"describe", "run", "x"}, {"run", "workflow", "x"}, {"pause", "-l", "a=b"}, {"cancel", "x"},
		{"skip", "x"}, {"why", "workflow", "x"}, {"next"}, {"publish", "w", "t", "--id", "1"}, {"delete", "workflow", "x", "--yes"},
	} {
		run(t, append(args, "--server", "http://127.0.0.1:1")...).expect(t, pawl.ExitUnreachable, "Start it with: pawl serve")
	}
}

// streamed makes a stream of some events that stays open.
func streamed(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i, e := range events {
			_, _ = fmt.Fprintf(w, "id: %d\n%s\n\n", i+1, e)
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// watchUntil runs a watch until it has written a word to stdout or stderr.
func watchUntil(t *testing.T, f *fake, word string, args ...string) (stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	p, out, errs := f.call().process(t, args...)
	both := &output{}
	p.Stdout, p.Stderr = io.MultiWriter(out, both), io.MultiWriter(errs, both)
	ended := make(chan int, 1)
	go func() { ended <- Run(ctx, p) }()
	both.await(ctx, t, word)
	cancel()
	if code := <-ended; code != pawl.ExitDone {
		t.Errorf("exit code %d: %s", code, errs)
	}
	return out.String(), errs.String()
}

func TestWatchedWorkflowsAreReadAgainWhenSomethingHappens(t *testing.T) {
	f := workflowAPI(t)
	f.answer["GET /api/v1/workflows/bills"] = fakeJSON{200, strings.Replace(billLane, "Needs attention", "Running", 1)}
	f.stream = streamed(
		`event: run`+"\n"+`data: {"what":"began","run":{"kind":"workflow","lane":"bills"},"at":"2026-01-01T00:00:00.000Z"}`,
		`event: run`+"\n"+`data: {"what":"began","run":{"kind":"source","lane":"prices"},"at":"2026-01-01T00:00:00.000Z"}`,
		`event: workflow`+"\n"+`data: {"what":"deleted","workflow":"gone","at":"2026-01-01T00:00:00.000Z"}`,
	)
	stdout, stderr := watchUntil(t, f, "is gone", "get", "workflows", "-w")
	if strings.Count(stdout, "NAME ") != 1 || strings.Count(stdout, "bills ") != 2 || !strings.Contains(stdout, "Running") || strings.Contains(stdout, "prices") {
		t.Errorf("got:\n%s", stdout)
	}
	if stderr != "workflow gone is gone.\n" {
		t.Errorf("stderr: %s", stderr)
	}
	if !strings.Contains(f.requests(), "GET /api/v1/workflows/bills") || strings.Contains(f.requests(), "prices") {
		t.Errorf("asked:\n%s", f.requests())
	}
}

// What an event leaves out of a run must not make its row look new.
func TestWatchedRunsAreShownWhenTheyChange(t *testing.T) {
	same, err := briefRun(json.RawMessage(failedRun))
	if err != nil {
		t.Fatal(err)
	}
	f := workflowAPI(t)
	f.stream = streamed(
		`event: run`+"\n"+`data: {"what":"stopped","run":`+string(same)+`}`,
		`event: run`+"\n"+`data: {"what":"began","run":{"id":"other","lane":"bills","kind":"workflow","status":"active"}}`,
		`event: run`+"\n"+`data: {"what":"began","run":{"id":"third","lane":"mail-to-sheet","kind":"workflow","status":"active"}}`,
	)
	stdout, _ := watchUntil(t, f, "third", "get", "runs", "--workflow", "mail-to-sheet", "-w", "-o", "json")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], runID) || !strings.Contains(lines[1], `"third"`) {
		t.Errorf("got:\n%s", stdout)
	}
}

func TestDeletingAWorkflowNeedsAYes(t *testing.T) {
	tests := map[string]struct {
		call func(*call)
		args []string
		code int
		says string
	}{
		"flag":        {func(*call) {}, []string{"--yes"}, pawl.ExitDone, ""},
		"answer":      {func(c *call) { c.terminal, c.stdin = true, "y\n" }, nil, pawl.ExitDone, "Delete workflow mail-to-sheet?"},
		"refused":     {func(c *call) { c.terminal, c.stdin = true, "\n" }, nil, pawl.ExitRefused, "the answer was not yes"},
		"no answer":   {func(c *call) { c.terminal = true }, nil, pawl.ExitRefused, "the answer was not yes"},
		"no terminal": {func(c *call) { c.stdin = "y\n" }, nil, pawl.ExitUsage, "--yes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := workflowAPI(t)
			c := f.call()
			tt.call(&c)
			c.env["NO_COLOR"] = "1"
			r := c.run(t, append([]string{"delete", "workflow", "mail-to-sheet"}, tt.args...)...)
			r.expect(t, tt.code, tt.says)
			want := map[bool]string{true: "DELETE /api/v1/workflows/mail-to-sheet", false: ""}[tt.code == pawl.ExitDone]
			if diff := cmp.Diff(want, f.requests()); diff != "" {
				t.Error(diff)
			}
		})
	}
	workflowAPI(t).run("delete", "workflow", "bills", "-y").expect(t, pawl.ExitRefused, "refused because of run_active (run_active)")
}
