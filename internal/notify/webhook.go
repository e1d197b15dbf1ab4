package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
)

// Webhook is a URL that notices are posted to.
type Webhook struct {
	URL string
	// Secret signs: whsec_ and base64, or any text. Empty signs nothing.
	Secret string
}

const (
	secretPrefix   = "whsec_"
	shortestSecret = 16 // bytes
)

// webhook posts letters.
type webhook struct {
	url    string
	host   string // for messages; the rest of a URL may be secret
	key    []byte // empty signs nothing
	client *outbound.Client
}

func newWebhook(name string, w Webhook, client *outbound.Client) (*webhook, error) {
	if fault := urlFault(w.URL); fault != "" {
		return nil, invalid("the URL of "+name+" "+fault, "Use a URL such as https://hooks.example.com/pawl.")
	}
	key, err := signingKey(w.Secret)
	if err != nil {
		return nil, invalid("the secret of "+name+" "+err.Error(),
			"Make one with: echo whsec_$(head -c 32 /dev/urandom | base64)")
	}
	u, err := url.Parse(w.URL)
	if err != nil {
		return nil, invalid("the URL of "+name+" is not a URL", "")
	}
	return &webhook{url: w.URL, host: u.Host, key: key, client: client}, nil
}

// signingKey reads a secret. Its errors never quote it.
func signingKey(secret string) ([]byte, error) {
	if secret == "" {
		return nil, nil
	}
	key := []byte(secret)
	if encoded, ok := strings.CutPrefix(secret, secretPrefix); ok {
		var err error
		if key, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "=")); err != nil {
			return nil, errors.New("is not base64 after " + secretPrefix)
		}
	}
	if len(key) < shortestSecret {
		return nil, fmt.Errorf("has less than %d bytes", shortestSecret)
	}
	return key, nil
}

// event is the body of a request.
type event struct {
	Type      string    `json:"type"`
	Timestamp string    `json:"timestamp"`
	Data      eventData `json:"data"`
}

type eventData struct {
	Kind  pawl.Kind `json:"kind"`
	Lane  string    `json:"lane"`
	Issue string    `json:"issue"`
	Text  string    `json:"text"`
	RunID string    `json:"runId,omitempty"`
	URL   string    `json:"url,omitempty"`
}

func (l letter) event() event {
	return event{
		Type: "lane." + l.What, Timestamp: pawl.FormatTime(l.At),
		Data: eventData{Kind: l.Kind, Lane: l.Lane, Issue: l.Issue, Text: l.Text, RunID: l.RunID, URL: l.URL},
	}
}

func (w *webhook) send(ctx context.Context, l letter, now time.Time) error {
	body, err := json.Marshal(l.event())
	if err != nil {
		return fmt.Errorf("write the body: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return errors.New("make the request: the URL cannot be called") // the cause would quote it
	}
	at := strconv.FormatInt(now.Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("webhook-id", l.ID)
	req.Header.Set("webhook-timestamp", at)
	if len(w.key) > 0 {
		req.Header.Set("webhook-signature", sign(w.key, l.ID, at, body))
	}
	resp, err := w.client.Do(ctx, req)
	if err != nil {
		return withHint(err)
	}
	_ = resp.Body.Close() // what it says is of no interest
	return w.judge(resp, now)
}

// sign is version 1 of the Standard Webhooks scheme.
func sign(key []byte, id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func (w *webhook) judge(resp *http.Response, now time.Time) error {
	status := resp.StatusCode
	if status >= 200 && status < 300 {
		return nil
	}
	err := fmt.Errorf("%s answered %d %s", w.host, status, http.StatusText(status))
	if status == http.StatusGone {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	if wait, ok := outbound.RetryAfter(resp.Header, now, longestGap); ok {
		return later{wait, err}
	}
	return err
}

// withHint adds to a failed call what to do about it.
func withHint(err error) error {
	if e, ok := errors.AsType[*outbound.Error](err); ok && e.Hint != "" {
		return fmt.Errorf("%w (%s)", e, e.Hint)
	}
	return err
}
