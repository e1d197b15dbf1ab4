package plain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/executor/process"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/redact"
	"github.com/pawlrun/pawl/internal/tool/connector"
	"github.com/pawlrun/pawl/internal/visible"
)

// killAfter is how long a command has to end that was told to.
const killAfter = 10 * time.Second

// command runs a program to its end.
func (p *Provider) command(ctx context.Context, what client.PlainRun, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
	s := &secrets{getenv: p.env.Getenv}
	env := p.environment(what, r, s)
	if result, missing := s.missing(); missing {
		return result, nil
	}
	path, err := find(what.Command[0], what.Dir, env)
	if err != nil {
		return again(runner.CodeNotFound, err.Error()), nil
	}
	w := &written{redact: redact.New(s.found), longest: s.longest()}
	w.stdout.Keep, w.stderr.Keep = kept+margin, kept+margin
	shown := w.show(ctx, emit)
	exit, err := process.Program{
		Command: append([]string{path}, what.Command[1:]...), Dir: what.Dir, Env: env, Stdout: &w.stdout, Stderr: &w.stderr, Grace: p.grace,
		Mark: "PAWL_RUN_ID=" + r.RunID,
	}.Run(ctx)
	shown()
	if err != nil {
		if ctx.Err() != nil {
			result, _, cause := runner.Ended(ctx)
			return result, cause
		}
		why := connector.Reason(err).Error()
		if errors.Is(err, fs.ErrNotExist) { // the program and the folder were found
			why = "the interpreter that " + pawl.Quote(path) + " names is not on this machine"
		}
		return again(runner.CodeInternal, "the command could not be started: "+why), nil
	}
	out := w.output()
	describeExit(exit, &out)
	if result, ended, err := runner.Ended(ctx); ended {
		if err != nil {
			return runner.Result{}, err
		}
		if result.Code == runner.CodeTimeout {
			result = again(runner.CodeTimeout, fmt.Sprintf("the command did not end within %s and was stopped", timeoutWords(what)))
		}
		return withOutput(result, out), nil
	}
	if exit == nil {
		return withOutput(runner.Result{OK: true}, out), nil
	}
	return withOutput(again(runner.CodeInternal, "the command ended with "+exitWords(exit, out)), out), nil
}

func timeoutWords(what client.PlainRun) string {
	if what.Timeout == "" {
		return "24h"
	}
	return what.Timeout
}

// describeExit notes how a command ended.
func describeExit(exit error, out *client.PlainOutput) {
	code := 0
	failed, ok := errors.AsType[*exec.ExitError](exit)
	switch {
	case exit == nil:
	case !ok:
		return
	case failed.ExitCode() < 0:
		out.Signal = strings.TrimPrefix(failed.String(), "signal: ")
		return
	default:
		code = failed.ExitCode()
	}
	out.ExitCode = &code
}

// exitWords say how a command ended, with the last thing that it said.
func exitWords(exit error, out client.PlainOutput) string {
	words := connector.Reason(exit).Error()
	switch {
	case out.ExitCode != nil:
		words = fmt.Sprintf("exit code %d", *out.ExitCode)
	case out.Signal != "":
		words = "the signal " + out.Signal
	}
	said := strings.TrimSpace(out.Stderr)
	if said == "" {
		said = strings.TrimSpace(out.Stdout)
	}
	if last := said[strings.LastIndexByte(said, '\n')+1:]; last != "" {
		words += ": " + runner.Excerpt(last)
	}
	return words
}

// environment is all that a command gets: its slot, where things are, and what its
// definition names.
func (p *Provider) environment(what client.PlainRun, r runner.Run, s *secrets) []string {
	all := map[string]string{
		"PATH": p.getenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
		"HOME": p.getenv("HOME", "/"), "LANG": p.getenv("LANG", "C.UTF-8"), "TZ": r.Timezone,
	}
	if all["TZ"] == "" {
		all["TZ"] = "UTC"
	}
	for name, value := range what.Env {
		all[name] = s.resolve(value)
	}
	all["PAWL_SCHEDULE"], all["PAWL_SCHEDULED_FOR"] = r.Schedule, pawl.FormatTime(r.ScheduledFor)
	all["PAWL_RUN_ID"], all["PAWL_ATTEMPT"], all["PAWL_IDEMPOTENCY_KEY"] = r.RunID, fmt.Sprint(r.Attempt), r.Key
	env := make([]string, 0, len(all))
	for name, value := range all {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

func (p *Provider) getenv(name, otherwise string) string {
	if value := p.env.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// find is the path of a program: one with a slash as it is, from the folder that
// it runs in, and another one on the path that it gets.
func find(name, dir string, env []string) (string, error) {
	if dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return "", fmt.Errorf("there is no folder %s on this machine to run in", pawl.Quote(dir))
		}
	}
	var places []string
	if strings.ContainsRune(name, filepath.Separator) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		places = []string{name}
	} else {
		i := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, "PATH=") })
		for _, folder := range filepath.SplitList(strings.TrimPrefix(env[i], "PATH=")) {
			if filepath.IsAbs(folder) { // others would depend on where the server was started
				places = append(places, filepath.Join(folder, name))
			}
		}
	}
	there := false
	for _, place := range places {
		info, err := os.Stat(place)
		there = there || err == nil
		if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return place, nil
		}
	}
	if there {
		return "", fmt.Errorf("%s is not executable", pawl.Quote(name))
	}
	return "", fmt.Errorf("there is no program %s on this machine", pawl.Quote(name))
}

// margin is kept beyond what is shown, so that a secret is not cut where the
// redactor does not know it.
const margin = 16 << 10

// written is what a command wrote so far.
type written struct {
	stdout, stderr process.Tail
	redact         redact.Redactor
	longest        int // bytes that a secret may take, in whatever form
}

func (w *written) output() client.PlainOutput {
	var out client.PlainOutput
	var outCut, errCut bool
	out.Stdout, out.StdoutBytes, outCut = w.text(&w.stdout)
	out.Stderr, out.StderrBytes, errCut = w.text(&w.stderr)
	out.Truncated = outCut || errCut
	return out
}

// text is the end of what was written, without secrets and with what is no text
// made visible.
func (w *written) text(t *process.Tail) (text string, total int64, cut bool) {
	raw, total := t.Last()
	text = w.redact.Text(string(raw))
	if total > int64(len(raw)) { // its first bytes may be the end of a secret
		text = text[min(w.longest, len(text)):]
	}
	text = visible.Text(strings.ReplaceAll(text, "\r\n", "\n"))
	if len(text) > kept {
		text = strings.ToValidUTF8(text[len(text)-kept:], "")
	}
	return text, total, total > int64(len(text))
}

// show tells what is written while the command runs, until it is called.
func (w *written) show(ctx context.Context, emit func(runner.Event) error) (end func()) {
	done := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		tick := time.NewTicker(showEvery)
		defer tick.Stop()
		var shown int64
		for next := time.Now(); ; {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			_, a := w.stdout.Last()
			_, b := w.stderr.Last()
			if a+b == shown || time.Now().Before(next) {
				continue
			}
			raw := encode(w.output())
			_ = emit(runner.Event{Kind: runner.KindOutput, Output: raw}) // all of it comes with the result
			shown, next = a+b, time.Now()
			if len(raw) > showLong {
				next = next.Add(showLongEvery - showEvery/2)
			}
		}
	})
	return func() {
		close(done)
		looking.Wait()
	}
}
