package outbound

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Which redirects are followed:
//
//	request                   301 302 303       307 308
//	read without a body       yes               yes
//	anything else             answer returned   to the same origin only, else an error
//
// A mutation is never turned into a GET, because the caller would take the
// answer of the GET for the answer of the mutation. Nothing is followed from
// https to http, past the limit, or to a URL that a caller could not call.
// Between origins only harmless headers go along.

// follows reports whether resp is a redirect to deal with, not an answer.
func (c *Client) follows(hop *http.Request, resp *http.Response) bool {
	if c.cfg.MaxRedirects < 0 || resp.Header.Get("Location") == "" {
		return false
	}
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		return isPlainRead(hop)
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

func isPlainRead(req *http.Request) bool { return EffectOf(req.Method) == Read && !hasBody(req) }

// redirect makes the request that resp asks for, after followed others.
func (c *Client) redirect(hop *http.Request, resp *http.Response, followed int) (*http.Request, error) {
	target, err := c.redirectTarget(hop, resp, followed)
	if err != nil {
		return nil, refuseRedirect(hop, resp, err)
	}
	same := sameOrigin(hop.URL, target)
	next := hop.Clone(hop.Context())
	next.URL = target
	if !same || hop.Host == hop.URL.Host {
		next.Host = target.Host
	}
	if !same {
		keepHarmless(next.Header)
	}
	if hasBody(hop) {
		if next.Body, err = hop.GetBody(); err != nil {
			return nil, refuseRedirect(hop, resp, fmt.Errorf("its body could not be read again: %w", err))
		}
	}
	return next, nil
}

// redirectTarget returns the URL that resp points to when it may be followed.
func (c *Client) redirectTarget(hop *http.Request, resp *http.Response, followed int) (*url.URL, error) {
	if followed >= c.cfg.MaxRedirects {
		return nil, fmt.Errorf("it is redirected more than %d times", c.cfg.MaxRedirects)
	}
	target, err := hop.URL.Parse(resp.Header.Get("Location"))
	if err != nil {
		return nil, errors.New("the redirect is not a URL") // the cause would quote it
	}
	if err := checkURL(target); err != nil {
		return nil, fmt.Errorf("the redirect cannot be called: %w", err)
	}
	if hop.URL.Scheme == "https" && target.Scheme == "http" {
		return nil, errors.New("it is redirected from https to http")
	}
	if isPlainRead(hop) {
		return target, nil
	}
	if !sameOrigin(hop.URL, target) {
		return nil, fmt.Errorf("it is redirected to another host (%s), and only a read may follow", excerpt(target.Host))
	}
	if hasBody(hop) && hop.GetBody == nil {
		return nil, errors.New("it is redirected, and its body cannot be sent again")
	}
	return target, nil
}

func refuseRedirect(hop *http.Request, resp *http.Response, err error) *Error {
	return newError(hop, Error{
		Kind: KindRedirect, Status: resp.StatusCode, MaybeSent: true, Reason: err.Error(), Err: err,
	})
}

// sameOrigin compares scheme, host and port. Moving from http to https on the
// default ports of one host stays within the origin: it only gets safer.
func sameOrigin(from, to *url.URL) bool {
	if !strings.EqualFold(from.Hostname(), to.Hostname()) {
		return false
	}
	if from.Scheme == to.Scheme {
		return portOf(from) == portOf(to)
	}
	return from.Scheme == "http" && portOf(from) == "80" && portOf(to) == "443"
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// keepHarmless drops every header but those that hold no secret. An allow list
// is the only safe one: any name may carry a key.
func keepHarmless(h http.Header) {
	harmless := []string{"Accept", "Accept-Encoding", "Accept-Language", "Content-Type", "User-Agent"}
	maps.DeleteFunc(h, func(name string, _ []string) bool { return !slices.Contains(harmless, name) })
}
