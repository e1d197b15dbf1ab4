// Command service takes orders: POST /orders {"email", "item"} commits the order and
// its e-mail.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

type order struct {
	Email string `json:"email"`
	Item  string `json:"item"`
}

type placed struct {
	Order int64  `json:"order"`
	Job   string `json:"job"`
}

// place commits both, or none: there is no order without its e-mail.
func place(ctx context.Context, pool *pgxpool.Pool, o order) (out placed, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `insert into orders (email, item) values ($1, $2) returning id`, o.Email, o.Item).Scan(&out.Order); err != nil {
			return err
		}
		mail := map[string]any{"order": out.Order, "to": o.Email, "item": o.Item}
		return tx.QueryRow(ctx, `select pawl.add_job(task => 'send-mail', payload => $1::jsonb, lane => $2)::text`, mail, o.Email).Scan(&out.Job)
	})
	return out, err
}

func run(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, os.Getenv("SHOP_DATABASE"))
	if err != nil {
		return err
	}
	defer pool.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		var o order
		var answer any
		status := http.StatusCreated
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&o)
		if err == nil {
			answer, err = place(r.Context(), pool, o)
		}
		if err != nil {
			status, answer = http.StatusUnprocessableEntity, map[string]string{"error": err.Error()}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer) // whoever asked may have left
	})
	server := &http.Server{Addr: cmp.Or(os.Getenv("SHOP_ADDR"), "127.0.0.1:8103"), Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		slog.Error("serve", "err", err)
		os.Exit(1)
	}
}
