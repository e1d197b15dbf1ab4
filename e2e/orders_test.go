package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// shop makes what examples/orders/shop.sql makes, for a role of this test, and returns
// how it logs in.
func shop(t *testing.T, database string) string {
	t.Helper()
	text, err := os.ReadFile("../examples/orders/shop.sql")
	if err != nil {
		t.Fatal(err)
	}
	admin, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	role := fmt.Sprintf("shop_%x", rand.Uint64())
	made := regexp.MustCompile(`(role|authorization|owner to) shop\b`).ReplaceAllString(string(text), "$1 "+role)
	if _, err := admin.Exec(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, sql := range []string{`drop owned by ` + role + ` cascade`, `drop role ` + role} {
			if _, err := admin.Exec(context.Background(), sql); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		}
		_ = admin.Close(context.Background())
	})
	at, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.User(role)
	return at.String()
}

// launched is a program that runs beside the test.
func launched(t *testing.T, dir string, env, command []string) (*exec.Cmd, *logBuffer) {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	log := &logBuffer{}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", strings.Join(command, " "), log)
		}
	})
	return cmd, log
}

// place asks a service for an order.
func place(t *testing.T, addr, email, item string) (status int, job string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"email": email, "item": item})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/orders", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	var out struct {
		Job string `json:"job"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, out.Job
}

// ordersExample builds an example, and tells where and how its worker and its service
// are started.
func ordersExample(t *testing.T, language string) (dir string, worker, service []string) {
	t.Helper()
	from, err := filepath.Abs("../examples/orders/" + language)
	if err != nil {
		t.Fatal(err)
	}
	switch language {
	case "python":
		return from, []string{python(t), "worker.py"}, []string{python(t), "service.py"}
	case "typescript":
		client := typescriptClient(t)
		dir := t.TempDir()
		copyTypeScript(t, from, dir)
		// What npm install would do: the client as it was built, the rest as it is pinned.
		modules, err := os.ReadDir(filepath.Join(client, "node_modules"))
		if err != nil || os.MkdirAll(filepath.Join(dir, "node_modules", "@pawlrun"), 0o700) != nil {
			t.Fatal(err)
		}
		for _, m := range modules {
			if err := os.Symlink(filepath.Join(client, "node_modules", m.Name()), filepath.Join(dir, "node_modules", m.Name())); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(client, filepath.Join(dir, "node_modules", "@pawlrun", "client")); err != nil {
			t.Fatal(err)
		}
		node(t, dir, "node_modules/typescript/bin/tsc")
		return dir, []string{"node", "dist/worker.js"}, []string{"node", "dist/service.js"}
	}
	out := t.TempDir()
	program(t, from, os.Environ(), "go", "build", "-o", out, "./worker", "./service")
	return from, []string{filepath.Join(out, "worker")}, []string{filepath.Join(out, "service")}
}

// In every language an order and its e-mail are committed together, and the e-mail is
// sent; an order that is refused has none. A worker that is killed loses none.
func TestOrderServices(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"go", "typescript", "python"} {
		t.Run(language, func(t *testing.T) {
			database := pgtest.URL(t)
			s := serve(t, database)
			dir, worker, service := ordersExample(t, language)
			addr := freeAddr(t)
			client, err := filepath.Abs("../clients/python")
			if err != nil {
				t.Fatal(err)
			}
			env := append(os.Environ(), "PAWL_URL="+s.url, "PAWL_TOKEN="+s.token(), "SHOP_DATABASE="+shop(t, database), "SHOP_ADDR="+addr, "PYTHONPATH="+client, "PYTHONDONTWRITEBYTECODE=1")
			first, mails := launched(t, dir, env, worker)
			s.eventually("the task is declared", func() bool { return s.call("GET", "/api/v1/tasks/send-mail", nil, nil) == http.StatusOK })
			launched(t, dir, env, service)
			s.eventually("the service listens", func() bool {
				c, err := (&http.Client{Timeout: time.Second}).Get("http://" + addr + "/")
				if err == nil {
					_ = c.Body.Close()
				}
				return err == nil
			})
			status, job := place(t, addr, "ada@example.com", "tea")
			if status != http.StatusCreated {
				t.Fatalf("an order was answered with %d", status)
			}
			s.eventually("the e-mail is sent", func() bool { return s.job(job).State == "succeeded" })
			if want := "to ada@example.com: your order 1 of tea <" + s.job(job).ID + ">"; !strings.Contains(mails.String(), want) {
				t.Errorf("the worker said %q, without %q", mails, want)
			}
			if status, _ := place(t, addr, "eve@example.com", ""); status != http.StatusUnprocessableEntity {
				t.Errorf("an order of nothing was answered with %d", status)
			}

			_ = first.Process.Signal(syscall.SIGTERM)
			if err := first.Wait(); err != nil {
				t.Errorf("the worker ended with %v", err)
			}
			_, waiting := place(t, addr, "grace@example.com", "coffee") // while nobody works
			_, nobody := place(t, addr, "nobody", "milk")
			_, again := launched(t, dir, env, worker)
			s.eventually("the e-mail is sent", func() bool { return s.job(waiting).State == "succeeded" })
			s.eventually("what has no address failed", func() bool { return s.job(nobody).State == "failed" })
			if strings.Contains(mails.String()+again.String(), "eve@") || strings.Count(mails.String()+again.String(), "to grace@example.com") != 1 {
				t.Errorf("the workers said %q and %q", mails, again)
			}
		})
	}
}
