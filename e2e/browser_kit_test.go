package e2e

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// tab is a page in a real browser, and what it said and asked for.
type tab struct {
	t   *testing.T
	ctx context.Context
	url string // of the server

	mu      sync.Mutex
	said    []string // warnings, errors and exceptions of the console; guarded by mu
	away    []string // requests to other hosts; guarded by mu
	allowed string   // what the console may say, once; guarded by mu
}

// openTab starts a browser.
func openTab(t *testing.T, base string) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.WindowSize(1280, 860))
	if os.Geteuid() == 0 { // Chromium's own sandbox does not run as root
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, url: base}
	messages, requests := chromedp.Console(ctx), chromedp.Events(ctx, network.RequestWillBeSent)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			b.heard(m)
		}
	}()
	go func() {
		for e, err := range requests {
			if err != nil {
				return
			}
			b.asked(e.Request.URL)
		}
	}()
	return b
}

func (b *tab) heard(m chromedp.ConsoleMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case m.Type != chromedp.ConsoleWarning && m.Type != chromedp.ConsoleError && !m.IsException():
	case b.allowed != "" && strings.Contains(m.Text, b.allowed):
		b.allowed = ""
	default:
		b.said = append(b.said, m.String()+" at "+m.URL)
	}
}

func (b *tab) asked(address string) {
	home, err := url.Parse(b.url)
	u, err2 := url.Parse(address)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil || err2 != nil || u.Scheme != "data" && u.Host != home.Host {
		b.away = append(b.away, address)
	}
}

// allow lets the console say this, once: Chromium tells of every answer that is
// a refusal.
func (b *tab) allow(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = text
}

// do acts, or fails the test.
func (b *tab) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 15*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%s: %v\n%s", what, err, b.text())
	}
}

func (b *tab) open(path string) {
	b.t.Helper()
	b.do("open "+path, chromedp.Navigate(b.url+path))
}

// eval is the value of an expression in the page.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 15*time.Second)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// text is what a person reads on the page.
func (b *tab) text() string {
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.title + "\n" + (document.getElementById("main")?.innerText ?? "")`))
	if err != nil {
		return err.Error()
	}
	return text
}

// sees waits until the page has all the texts.
func (b *tab) sees(texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		b.until(fmt.Sprintf(`document.body.innerText.replace(/\s+/g, " ").includes(%q)`, text))
	}
}

// until waits until an expression is true. While a page makes room for the next
// one it is neither.
func (b *tab) until(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 15*time.Second)
	defer cancel()
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for {
		if yes, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression)); err == nil && yes {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.t.Fatalf("did not become true: %s\n%s", expression, b.text())
		}
	}
}

// press clicks what is labelled like this: a button, a link or a summary that
// is seen.
func (b *tab) press(label string) {
	b.t.Helper()
	const find = `[...document.querySelectorAll("button, a, summary")].find(e => e.innerText.trim() === %q && e.offsetParent)`
	found := fmt.Sprintf(find, label)
	b.until("!document.documentElement.dataset.moved && !!" + found)
	b.do("press "+label, chromedp.Click(chromedp.JSPath(found)))
}

// write writes into a field that is seen, or that is once what hides it is unfolded:
// a page that is loaded anew folds it.
func (b *tab) write(field, text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`(() => {
		const e = document.querySelector(%q), around = e?.closest("details");
		if (around) around.open = true;
		return !document.documentElement.dataset.moved && !!e?.offsetParent;
	})()`, field))
	b.do("write into "+field, chromedp.SendKeys(chromedp.CSS(field), text))
}

// scheme makes the page light or dark.
func (b *tab) scheme(name string) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) size(width, height int64, scale float64) {
	b.t.Helper()
	b.do("resize", chromedp.EmulateViewport(width, height, chromedp.EmulateScale(scale)))
}

// quiet fails the test if the console said something, or if a request went to
// another host.
func (b *tab) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.said) > 0 {
		b.t.Errorf("the console says:\n%s", strings.Join(b.said, "\n"))
	}
	if len(b.away) > 0 {
		b.t.Errorf("requests left the host: %v", b.away)
	}
}
