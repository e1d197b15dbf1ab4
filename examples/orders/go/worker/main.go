// Command worker sends the e-mails of orders. Here it writes them to stdout.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/pawlrun/pawl/client"
)

type mail struct {
	Order int64  `json:"order"`
	To    string `json:"to"`
	Item  string `json:"item"`
}

func send(_ context.Context, job client.ClaimedJob) (any, error) {
	var m mail
	if err := json.Unmarshal(job.Payload, &m); err != nil {
		return nil, client.Permanent(err)
	}
	if !strings.Contains(m.To, "@") {
		return nil, client.Permanent(fmt.Errorf("%s is no address", m.To))
	}
	// The job's id names the message, so that one that is sent twice is known.
	if _, err := fmt.Fprintf(os.Stdout, "to %s: your order %d of %s <%s>\n", m.To, m.Order, m.Item, job.ID); err != nil {
		return nil, err
	}
	return map[string]string{"messageId": job.ID}, nil
}

func run(ctx context.Context) error {
	c, err := client.New(client.Config{URL: cmp.Or(os.Getenv("PAWL_URL"), "http://127.0.0.1:7295"), Token: os.Getenv("PAWL_TOKEN")})
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.DeclareTask(ctx, "send-mail", client.TaskRequest{Lease: "30s", MaxAttempts: 5}); err != nil {
		return err
	}
	return client.Worker{Client: c, Task: "send-mail", Do: send, Concurrency: 10, Log: slog.Default()}.Run(ctx)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		slog.Error("work", "err", err)
		os.Exit(1)
	}
}
