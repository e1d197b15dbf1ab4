// Package work says what schedules run without a graph and without a grant: a
// command, a call of a URL, a job. To the execution service each is a graph of a
// provider of its own, whose input is a client.PlainRun.
package work

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/when"
)

// Provider is the provider of these graphs. Only slots of schedules can run them.
const Provider = "pawl"

// The graphs.
const (
	Command = Provider + ":command"
	URL     = Provider + ":url"
	Job     = Provider + ":job"
)

// Is reports whether a graph is one of these.
func Is(graphID string) bool { return strings.HasPrefix(graphID, Provider+":") }

// The longest that one may take, and what a call takes if nothing is said.
const (
	Longest    = 24 * time.Hour
	URLTimeout = 5 * time.Minute
)

// Graph is the graph of what was checked, and its input.
func Graph(r client.PlainRun) (graphID string, input json.RawMessage) {
	switch {
	case len(r.Command) > 0:
		graphID = Command
	case r.URL != "":
		graphID = URL
	default:
		graphID = Job
	}
	input, _ = json.Marshal(r) // its payloads are JSON, which was checked
	return graphID, input
}

// Read reads the input of such a graph.
func Read(input json.RawMessage) (r client.PlainRun, err error) {
	if err := json.Unmarshal(input, &r); err != nil {
		return r, fmt.Errorf("read what is to run: %w", err)
	}
	return r, nil
}

// Timeout is how long it may take.
func Timeout(r client.PlainRun) time.Duration {
	if d, err := when.ParseInterval(r.Timeout); err == nil {
		return d
	}
	if r.URL != "" {
		return URLTimeout
	}
	return Longest
}

// OwnVariables are those that a command is told its slot by.
func OwnVariables() []string {
	return []string{"PAWL_SCHEDULE", "PAWL_SCHEDULED_FOR", "PAWL_RUN_ID", "PAWL_ATTEMPT", "PAWL_IDEMPOTENCY_KEY"}
}

var (
	variable   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	references = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)
	token      = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// ownHeaders are those that Pawl sets, or that are for the connection to decide.
func ownHeaders() []string {
	return []string{"connection", "content-length", "host", "idempotency-key", "transfer-encoding", "upgrade"}
}

// Check finds what is wrong with what is to run. add gets the pointer of the field
// within it.
func Check(r client.PlainRun, add func(pointer, format string, values ...any)) {
	kinds := 0
	for _, there := range []bool{r.Command != nil, r.URL != "", r.Job != nil} {
		if there {
			kinds++
		}
	}
	if kinds != 1 {
		add("", "run has exactly one of command, url and job")
		return
	}
	if r.Timeout != "" {
		if d, err := when.ParseInterval(r.Timeout); err != nil {
			add("/timeout", "timeout %q is not a length of time such as 30s or 30m", r.Timeout)
		} else if d > Longest {
			add("/timeout", "timeout is at most 24h")
		}
	}
	belongs := func(pointer string, there bool, to string, right bool) {
		if there && !right {
			add(pointer, "%s is for %s", strings.TrimPrefix(pointer, "/"), to)
		}
	}
	command, call := r.Command != nil, r.URL != ""
	belongs("/dir", r.Dir != "", "command", command)
	belongs("/env", r.Env != nil, "command", command)
	belongs("/method", r.Method != "", "url", call)
	belongs("/headers", r.Headers != nil, "url", call)
	belongs("/body", len(r.Body) > 0, "url", call)
	switch {
	case command:
		checkCommand(r, add)
	case call:
		checkCall(r, add)
	case r.Job.Task == "":
		add("/job/task", "task is missing; it looks like {task: http, payload: {...}}")
	}
}

func checkCommand(r client.PlainRun, add func(pointer, format string, values ...any)) {
	if len(r.Command) == 0 || r.Command[0] == "" {
		add("/command", "command is empty; it looks like [/usr/local/bin/backup, --full]")
	}
	for i, part := range r.Command {
		at := fmt.Sprintf("/command/%d", i)
		switch {
		case strings.ContainsRune(part, 0):
			add(at, "an argument cannot hold a zero byte")
		case strings.Contains(part, "${"):
			add(at, "arguments are seen by every user of the machine; put secrets into env")
		}
	}
	if strings.ContainsRune(r.Dir, 0) || strings.Contains(r.Dir, "${") {
		add("/dir", "dir is a folder, as it is")
	}
	for name, value := range r.Env {
		at := "/env/" + name
		switch {
		case !variable.MatchString(name):
			add("/env", "%q is not the name of a variable", name)
		case slices.Contains(OwnVariables(), name):
			add(at, "%s is set by Pawl", name)
		case strings.ContainsRune(value, 0):
			add(at, "a variable cannot hold a zero byte")
		default:
			checkReferences(at, value, add)
		}
	}
}

func checkReferences(at, text string, add func(pointer, format string, values ...any)) {
	if strings.Contains(references.ReplaceAllString(text, ""), "${") {
		add(at, "${ must be followed by the name of an environment variable and }")
	}
}

func checkCall(r client.PlainRun, add func(pointer, format string, values ...any)) {
	checkReferences("/url", r.URL, add)
	u, err := url.Parse(references.ReplaceAllString(r.URL, "x"))
	whole := references.FindString(r.URL) == r.URL // the address itself is kept elsewhere
	switch {
	case whole:
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		add("/url", "url must begin with https:// or http:// and name a host")
	case u.User != nil:
		add("/url", "url holds a user name or password; put credentials into headers")
	case u.Fragment != "":
		add("/url", "url has a #")
	}
	if method := strings.ToUpper(r.Method); r.Method != "" && (!token.MatchString(r.Method) || method == "CONNECT" || method == "TRACE") {
		add("/method", "method %q is not one that can be sent", r.Method)
	}
	for name, value := range r.Headers {
		at := "/headers/" + name
		switch {
		case !token.MatchString(name):
			add("/headers", "%q is not the name of a header", name)
		case slices.Contains(ownHeaders(), strings.ToLower(name)):
			add(at, "the header %s is set by Pawl", name)
		case strings.ContainsAny(value, "\r\n\x00"):
			add(at, "the header %s holds a line break", name)
		default:
			checkReferences(at, value, add)
		}
	}
	if len(r.Body) > 0 && !json.Valid(r.Body) {
		add("/body", "body must be JSON")
	}
}

// NamesSecrets reports whether it refers to variables of the server.
func NamesSecrets(r client.PlainRun) bool {
	texts := []string{r.URL}
	for _, value := range r.Env {
		texts = append(texts, value)
	}
	for _, value := range r.Headers {
		texts = append(texts, value)
	}
	return slices.ContainsFunc(texts, references.MatchString)
}

// InFolder is what is to run, with its paths taken from the folder that the
// definition is in.
func InFolder(r client.PlainRun, folder string) client.PlainRun {
	if len(r.Command) == 0 {
		return r
	}
	if !filepath.IsAbs(r.Dir) {
		r.Dir = filepath.Join(folder, r.Dir)
	}
	return r
}
