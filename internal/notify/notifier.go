package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/store"
)

// Name is the task that delivers notices.
const Name = "pawl.notify"

// Config is who is told, and how. Without targets nobody is.
type Config struct {
	DB       *store.DB
	Client   *outbound.Client
	Webhooks []Webhook
	Mail     *Mail  // nil sends none
	BaseURL  string // where people find this Pawl, such as https://pawl.example.com; may be empty
	Log      *slog.Logger
}

// Notifier tells people about lanes. It is safe for concurrent use.
type Notifier struct {
	db       *store.DB
	queue    lane.Jobs
	targets  []*target
	baseURL  string
	log      *slog.Logger
	patience time.Duration   // with one attempt
	gaps     []time.Duration // between attempts; the last one repeats
}

// target is one receiver of notices.
type target struct {
	name string
	via  sender
	gone atomic.Bool // it asked to be left alone
}

// sender delivers a letter.
type sender interface {
	send(ctx context.Context, l letter, now time.Time) error
}

// New makes a notifier, or says what is wrong with its configuration. Attach
// must follow before it is used.
func New(cfg Config) (*Notifier, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	n := &Notifier{db: cfg.DB, log: cfg.Log, baseURL: strings.TrimRight(cfg.BaseURL, "/"), patience: attemptTime, gaps: gaps()}
	if cfg.BaseURL != "" {
		if fault := urlFault(cfg.BaseURL); fault != "" {
			return nil, invalid("the address of this server "+fault, "Use a URL such as https://pawl.example.com.")
		}
	}
	for i, w := range cfg.Webhooks {
		name := fmt.Sprintf("webhook-%d", i+1)
		via, err := newWebhook(name, w, cfg.Client)
		if err != nil {
			return nil, err
		}
		n.targets = append(n.targets, &target{name: name, via: via})
	}
	if cfg.Mail != nil {
		boxes, err := newMailboxes(*cfg.Mail, cfg.Client)
		if err != nil {
			return nil, err
		}
		for i, via := range boxes {
			n.targets = append(n.targets, &target{name: fmt.Sprintf("mail-%d", i+1), via: via})
		}
	}
	if len(n.targets) > 0 && (cfg.Client == nil || cfg.DB == nil) {
		return nil, errors.New("notify: a database and a client are needed")
	}
	return n, nil
}

// Attach gives the notifier the queue that carries its jobs. The queue needs
// the notifier's task first, which is why New does not take it.
func (n *Notifier) Attach(q lane.Jobs) { n.queue = q }

// Notify tells every target, if and only if the caller's transaction commits.
// What waits already for the same cause is not told twice.
func (n *Notifier) Notify(ctx context.Context, tx *store.Tx, notice lane.Notice) error {
	if err := validate(notice); err != nil {
		return err
	}
	l := letterOf(notice, tx.Now, n.baseURL)
	var specs []store.JobSpec
	for _, t := range n.targets {
		spec, err := l.job(t.name)
		if err != nil {
			return err
		}
		specs = append(specs, spec)
	}
	if len(specs) == 0 {
		return nil
	}
	if _, err := n.queue.EnqueueTx(ctx, tx, specs...); err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	return nil
}

func (n *Notifier) target(name string) *target {
	for _, t := range n.targets {
		if t.name == name {
			return t
		}
	}
	return nil
}

// invalid is a fault of the configuration. URLs are not quoted: many carry a
// key in their path.
func invalid(msg, hint string) error {
	return &pawl.Error{Code: pawl.CodeInvalid, Op: "configure notices", Msg: msg, Hint: hint}
}

// urlFault says what keeps a URL from being called, or nothing.
func urlFault(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "is not a URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return "does not begin with http:// or https://"
	case u.Hostname() == "":
		return "names no host"
	case u.User != nil:
		return "holds a user name or password"
	}
	return ""
}
