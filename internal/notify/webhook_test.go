package notify

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// A-139, lesson 33: whoever is set to be told is told, by a request that a
// receiver can check, and by nothing that was rolled back.
func TestNoticeArrivesSignedOnceItsCauseIsCommitted(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		hook := newReceiver(t, alwaysOK)
		r := newRig(t, openDB(t, url), Config{Webhooks: []Webhook{{hook.URL + "/s3cret-path", secret}}, BaseURL: "https://pawl.example.com/"})
		at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
		notice := sickLane(lane.NoticeAttention, "Reconnect the account.")
		notice.At = at

		undone := errors.New("rolled back")
		err := r.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			never := notice
			never.Text = "This never was."
			return errors.Join(r.n.Notify(ctx, tx, never), undone)
		})
		if !errors.Is(err, undone) {
			t.Fatal(err)
		}
		r.tell(notice)

		d := hook.wait(t)
		if err := verify(secret, d, time.Now()); err != nil {
			t.Errorf("the signature: %v", err)
		}
		e := d.Event
		if e.Type != "lane.needs_attention" || e.Timestamp != "2026-03-01T08:00:00.000Z" || e.Data.Kind != "workflow" || e.Data.Lane != "prices" ||
			e.Data.Issue != "sign_in" || e.Data.Text != "Reconnect the account." || e.Data.RunID != "run-7" || e.Data.URL != "https://pawl.example.com/workflows/prices" {
			t.Errorf("the body is %s", d.Body)
		}
		r.drained()
		if len(hook.got) > 0 {
			t.Errorf("a second notice came: %s", (<-hook.got).Body)
		}
	})
}

func TestNothingSecretIsStored(t *testing.T) {
	hook := newReceiver(t, func(context.Context, int) int { return http.StatusInternalServerError })
	r := newRig(t, openDB(t, sqliteURL(t)), Config{Webhooks: []Webhook{{hook.URL + "/s3cret-path", secret}}},
		func(n *Notifier) { n.gaps = []time.Duration{time.Hour} })
	r.tell(sickLane(lane.NoticeAttention, "Reconnect the account."))
	eventually(t, "the failure is written", func() bool { return r.rows()[0].LastErr != "" })
	for _, part := range []string{"s3cret-path", hook.URL, secret, "eighteen"} {
		if row := r.rows()[0]; strings.Contains(row.Payload+row.LastErr, part) {
			t.Errorf("the row holds %q: %+v", part, row)
		}
	}
}

// The vector that the libraries of the scheme are tested with.
func TestSignatureIsThatOfTheScheme(t *testing.T) {
	key, err := signingKey("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got := sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if raw, err := signingKey("a secret that is just text"); err != nil || string(raw) != "a secret that is just text" {
		t.Errorf("text is taken as it is: %q, %v", raw, err)
	}
}

// A receiver with another secret, or that was sent another body, must notice.
func TestForgedDeliveriesDoNotVerify(t *testing.T) {
	hook := newReceiver(t, alwaysOK)
	r := newRig(t, openDB(t, sqliteURL(t)), Config{Webhooks: []Webhook{{hook.URL, secret}}})
	r.tell(sickLane(lane.NoticeAttention, "Reconnect the account."))
	d := hook.wait(t)
	if err := verify("whsec_c2V2ZW50ZWVuIGJ5dGVzIQ==", d, time.Now()); err == nil {
		t.Error("another secret verifies")
	}
	forged := d
	forged.Body = strings.Replace(d.Body, "Reconnect", "Disconnect", 1)
	if err := verify(secret, forged, time.Now()); err == nil {
		t.Error("another body verifies")
	}
	forged = d
	forged.ID = "another"
	if err := verify(secret, forged, time.Now()); err == nil {
		t.Error("another id verifies")
	}
}

func TestFailedDeliveryIsTriedAgainUnderTheSameID(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		hook := newReceiver(t, func(_ context.Context, nth int) int {
			return []int{http.StatusInternalServerError, http.StatusUnauthorized, http.StatusOK}[nth-1]
		})
		r := newRig(t, openDB(t, url), Config{Webhooks: []Webhook{{hook.URL, secret}}})
		r.tell(sickLane(lane.NoticeAttention, "Reconnect the account."))
		first := hook.wait(t)
		for range 2 {
			d := hook.wait(t)
			if d.ID != first.ID || d.ID == "" || d.Body != first.Body {
				t.Errorf("another attempt differs: %+v, first %+v", d, first)
			}
			if err := verify(secret, d, time.Now()); err != nil {
				t.Error(err)
			}
		}
		r.drained()
	})
}

func TestGoneWebhookIsLeftAlone(t *testing.T) {
	gone := newReceiver(t, func(context.Context, int) int { return http.StatusGone })
	well := newReceiver(t, alwaysOK)
	r := newRig(t, openDB(t, sqliteURL(t)), Config{Webhooks: []Webhook{{gone.URL, secret}, {well.URL, ""}}})
	r.tell(sickLane(lane.NoticeAttention, "Reconnect the account."))
	gone.wait(t)
	if d := well.wait(t); d.Signature != "" {
		t.Errorf("signed without a secret: %s", d.Signature)
	}
	r.drained()
	r.tell(sickLane(lane.NoticeRecovered, "It works again."))
	if d := well.wait(t); d.Event.Type != "lane.recovered" {
		t.Errorf("got %s", d.Body)
	}
	r.drained()
	if len(gone.got) > 0 {
		t.Error("a webhook that is gone got another notice")
	}
}

func TestHangingWebhookIsGivenUpAndDelaysNoOther(t *testing.T) {
	hung := make(chan struct{})
	slow := newReceiver(t, func(ctx context.Context, nth int) int {
		if nth == 1 {
			<-ctx.Done() // the other side gave up
			close(hung)
		}
		return http.StatusOK
	})
	well := newReceiver(t, alwaysOK)
	r := newRig(t, openDB(t, sqliteURL(t)), Config{Webhooks: []Webhook{{slow.URL, secret}, {well.URL, secret}}},
		func(n *Notifier) { n.patience = 3 * time.Second })
	r.tell(sickLane(lane.NoticeAttention, "Reconnect the account."))
	first := slow.wait(t)
	well.wait(t)
	select {
	case <-hung:
		t.Error("the hanging one was given up before the other was told")
	default:
	}
	if d := slow.wait(t); d.ID != first.ID {
		t.Errorf("the second attempt has the id %s, the first %s", d.ID, first.ID)
	}
	<-hung
	r.drained()
}

func TestRetryAfterIsHonoured(t *testing.T) {
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1800")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer hook.Close()
	r := newRig(t, openDB(t, sqliteURL(t)), Config{Webhooks: []Webhook{{hook.URL, secret}}})
	r.tell(sickLane(lane.NoticeAttention, "Reconnect the account."))
	eventually(t, "the failure is written", func() bool { return r.rows()[0].LastErr != "" })
	if got := r.rows()[0]; got.Wait < 29*time.Minute || got.Wait > 31*time.Minute || !strings.Contains(got.LastErr, "429") {
		t.Errorf("waits %v after %q, want half an hour", got.Wait, got.LastErr)
	}
}

func TestPrivateAddressIsRefusedWithAHint(t *testing.T) {
	r := newRig(t, openDB(t, sqliteURL(t)), Config{Client: newClient(t), Webhooks: []Webhook{{"http://127.0.0.1:9/", secret}}})
	r.tell(sickLane(lane.NoticeAttention, "Reconnect the account."))
	eventually(t, "the failure is written", func() bool { return strings.Contains(r.rows()[0].LastErr, "--allow-private") })
}

func TestBadConfigurationIsRefusedWithoutQuotingIt(t *testing.T) {
	good := Mail{Host: "smtp.example.com", From: "Pawl <pawl@example.com>", To: []string{"ops@example.com"}}
	withMail := func(change func(*Mail)) Config {
		m := good
		change(&m)
		return Config{Mail: &m}
	}
	hooks := func(w ...Webhook) Config { return Config{Webhooks: w} }
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"no scheme":          {hooks(Webhook{URL: "s3cret.example.com"}), "URL of webhook-1 does not begin with"},
		"no host":            {hooks(Webhook{URL: "https:///s3cret"}), "names no host"},
		"userinfo":           {hooks(Webhook{URL: "https://ok.example.com"}, Webhook{URL: "https://u:s3cret@example.com"}), "webhook-2 holds a user name"},
		"no URL":             {hooks(Webhook{URL: "https://a b/s3cret"}), "is not a URL"},
		"not base64":         {hooks(Webhook{"https://example.com", "whsec_s3cret!"}), "secret of webhook-1 is not base64"},
		"short secret":       {hooks(Webhook{"https://example.com", "s3cret"}), "less than 16 bytes"},
		"base":               {Config{BaseURL: "pawl.example.com"}, "address of this server"},
		"no mail server":     {withMail(func(m *Mail) { m.Host = "" }), "is not the name of a mail server"},
		"a port in the host": {withMail(func(m *Mail) { m.Host = "smtp.example.com:25" }), "is not the name of a mail server"},
		"unknown way":        {withMail(func(m *Mail) { m.TLS = "ssl" }), `"ssl" is not a way`},
		"plain":              {withMail(func(m *Mail) { m.TLS = TLSNone }), "without TLS"},
		"no such port":       {withMail(func(m *Mail) { m.Port = 70000 }), "is not a port"},
		"half a sign-in":     {withMail(func(m *Mail) { m.Password = "s3cret" }), "both a user name and a password"},
		"no sender":          {withMail(func(m *Mail) { m.From = "" }), "sender of mails is not given"},
		"nobody":             {withMail(func(m *Mail) { m.To = nil }), "mails have no recipient"},
		"no address":         {withMail(func(m *Mail) { m.To = []string{"ops"} }), `"ops" is not an address`},
		"odd address":        {withMail(func(m *Mail) { m.To = []string{"ops@exämple.com"} }), "not plain ASCII"},
	} {
		_, err := New(c.cfg)
		e, ok := errors.AsType[*pawl.Error](err)
		if !ok || e.Code != pawl.CodeInvalid || !strings.Contains(e.Error(), c.want) || e.Hint == "" {
			t.Errorf("%s: got %v, want %q and a hint", name, err, c.want)
		} else if strings.Contains(e.Error(), "s3cret") {
			t.Errorf("%s: the error quotes a secret: %v", name, err)
		}
	}
	if _, err := New(Config{DB: &store.DB{}, Client: newClient(t), Mail: &good, Webhooks: []Webhook{{"https://example.com/x", secret}}}); err != nil {
		t.Errorf("a good configuration: %v", err)
	}
}
