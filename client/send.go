package client

import (
	"errors"
	"net/http"
	"syscall"
	"time"
)

// knock is how long to wait before a server that does not listen is tried again.
const knock = 50 * time.Millisecond

// do sends a request. A server on this machine may just be starting: while
// nothing listens it is tried again for a while, and a token that it does not
// know is read again, because it writes the first one itself.
func (c *Client) do(req *http.Request) (*http.Response, error) {
	resp, err := c.reach(req)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || !c.renewed() {
		return resp, err
	}
	again, err := repeat(req)
	if err != nil {
		return resp, nil //nolint:nilerr // what cannot be sent again was answered
	}
	_ = resp.Body.Close() // its answer is of no use
	c.authorize(again)
	return c.http.Do(again)
}

// reach sends a request as soon as somebody listens.
func (c *Client) reach(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	for begin := time.Now(); errors.Is(err, syscall.ECONNREFUSED) && c.cfg.Patience != nil && time.Since(begin) < c.cfg.Patience(); {
		select {
		case <-req.Context().Done():
			return nil, err
		case <-time.After(knock):
		}
		again, wrong := repeat(req)
		if wrong != nil {
			return nil, err
		}
		resp, err = c.http.Do(again)
	}
	return resp, err
}

// repeat is a request as it was before it was sent.
func repeat(req *http.Request) (again *http.Request, err error) {
	again = req.Clone(req.Context())
	if req.GetBody != nil {
		again.Body, err = req.GetBody()
	}
	return again, err
}

// renewed reports whether there is another token by now, and takes it.
func (c *Client) renewed() bool {
	if c.cfg.Renew == nil {
		return false
	}
	token := c.cfg.Renew()
	c.mu.Lock()
	defer c.mu.Unlock()
	if token == "" || token == c.token {
		return false
	}
	c.token = token
	return true
}

// authorize says who is asking.
func (c *Client) authorize(req *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
}

// anonymous reports whether nobody is said to be asking.
func (c *Client) anonymous() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token == ""
}
