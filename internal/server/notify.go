package server

import (
	"fmt"
	"os"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/notify"
)

// buildNotices makes what tells people, and what tells others that all is well.
func (s *server) buildNotices() (err error) {
	c := s.cfg
	secret, err := secretOf(c.NotifySecretFile)
	if err != nil {
		return err
	}
	cfg := notify.Config{DB: s.db, Client: s.client, BaseURL: c.PublicURL, Log: s.log}
	for _, url := range c.NotifyWebhooks {
		cfg.Webhooks = append(cfg.Webhooks, notify.Webhook{URL: url, Secret: secret})
	}
	if c.NotifyMailHost != "" {
		password, err := secretOf(c.NotifyMailPasswordFile)
		if err != nil {
			return err
		}
		cfg.Mail = &notify.Mail{
			Host: c.NotifyMailHost, Port: c.NotifyMailPort, TLS: c.NotifyMailTLS, Username: c.NotifyMailUser, Password: password,
			From: c.NotifyMailFrom, To: c.NotifyMailTo,
		}
	}
	if s.notices, err = notify.New(cfg); err != nil {
		return err
	}
	s.heartbeat, err = notify.NewHeartbeat(notify.HeartbeatConfig{
		URL: c.HeartbeatURL, Client: s.client, Log: s.log, Health: func() error { return s.queue.Health() },
	})
	return err
}

// secretOf reads a secret from its file.
func secretOf(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", &pawl.Error{Code: pawl.CodeInvalid, Op: "read configuration", Msg: fmt.Sprintf("the secret in %s cannot be read", file), Err: err}
	}
	return strings.TrimSpace(string(text)), nil
}
