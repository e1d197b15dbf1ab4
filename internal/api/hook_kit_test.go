package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/hook"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/workflow"
)

const hookSecret = "s3cret-of-the-hook"

// makeHooks makes the service of hooks, as the server does.
func (r *rig) makeHooks(flows *workflow.Service) {
	r.t.Setenv("PAWL_TEST_HOOK_SECRET", hookSecret)
	r.hooks = hook.New(hook.Config{
		DB: r.db, Log: slog.New(slog.DiscardHandler), Getenv: os.Getenv, MaxPayload: testMaxPayload,
		Publish: func(ctx context.Context, tx *store.Tx, e hook.Event, by string) error {
			return flows.PublishMany(ctx, tx, e.Workflow, []workflow.ExternalEvent{{Topic: e.Topic, MessageID: e.MessageID, Payload: e.Payload}}, by)
		},
		Enqueue: func(ctx context.Context, tx *store.Tx, job store.JobSpec) (string, error) {
			if t, known := r.queue.Tasks()[job.Task]; !known || t.Internal {
				return "", &pawl.Error{Code: pawl.CodeInvalid, Msg: "no such task"}
			}
			jobs, err := r.queue.EnqueueTx(ctx, tx, job)
			if err != nil {
				return "", err
			}
			return strconv.FormatInt(jobs[0].ID, 10), nil
		},
		Run: func(ctx context.Context, tx *store.Tx, owner, name, by string) (time.Time, error) {
			slot, err := r.graphs.RunNamed(ctx, tx, owner, name, by)
			return slot.ScheduledFor, err
		},
	})
}

// hookOf is the definition of a hook that believes whoever knows the secret.
func hookOf(effect string) string {
	return `{"verify":{"scheme":"token","secret":"${PAWL_TEST_HOOK_SECRET}"},"deliveryId":"body:id",` + effect + `}`
}

// putHook applies a hook and delivers something to it.
func (r *rig) putHook(name, effect string) client.Delivery {
	r.t.Helper()
	r.do("PUT", "/api/v1/hooks/"+name, hookOf(effect)).want(http.StatusCreated)
	if status := r.deliver(name, hookSecret, `{"id":"d1","text":"private"}`); status != http.StatusAccepted {
		r.t.Fatalf("the delivery was answered with %d", status)
	}
	var page client.Page[client.Delivery]
	r.do("GET", "/api/v1/hooks/"+name+"/deliveries", nil).want(200).into(&page)
	if len(page.Items) != 1 {
		r.t.Fatalf("the deliveries are %+v", page.Items)
	}
	return page.Items[0]
}

func (r *rig) deliver(name, secret, body string) int {
	req := httptest.NewRequest(http.MethodPost, "/hooks/"+name, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+secret)
	w := httptest.NewRecorder()
	r.hooks.ServeHTTP(w, req)
	return w.Code
}
