package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/pawlrun/pawl/client"
)

// A person with a browser, on one server: what is seen moves by itself, every
// decision can be taken, refusals are told in place, and nothing is fetched
// from elsewhere.
func TestPagesInABrowser(t *testing.T) {
	g := newStage(t)
	b := openTab(t, g.url)
	steps := []struct {
		name string
		step func(t *testing.T, g *stage, b *tab)
	}{
		{"sign in with the one-time link", signIn},
		{"the overview moves by itself", seeMoving},
		{"approve an order", approveOrder},
		{"resolve an uncertain one", resolveUncertain},
		{"answer a graph", answerGraph},
		{"see a fetch under way, and run now is refused", runNowRefused},
		{"pause and resume", pauseAndResume},
		{"backfill with its progress", backfill},
		{"only the keyboard", keyboardOnly},
		{"a narrow screen", narrowScreen},
	}
	for _, s := range steps {
		ok := t.Run(s.name, func(t *testing.T) {
			b.t, g.t = t, t
			s.step(t, g, b)
			b.quiet()
		})
		if !ok {
			t.FailNow() // the next steps build on it
		}
	}
	takePictures(t, g, b)
}

func signIn(t *testing.T, g *stage, b *tab) {
	b.size(1280, 860, 1)
	b.open("/")
	b.sees("Sign in")
	if g.link == "" {
		b.do("paste the token", chromedp.SendKeys(chromedp.CSS("input[name=token]"), g.token()))
		b.press("Sign in")
	} else {
		b.do("follow the link", chromedp.Navigate(g.link))
	}
	b.sees("Overview", "orders", "prices", "daily-report")
	if address := eval[string](b, "location.href"); strings.Contains(address, "code=") {
		t.Errorf("the code stays in the address: %s", address)
	}
	if kinds := eval[string](b, `[...document.querySelectorAll("tbody .kind")].map(e => e.innerText).join(" ")`); !strings.Contains(kinds, "workflow") || !strings.Contains(kinds, "source") || !strings.Contains(kinds, "schedule") {
		t.Errorf("the kinds are %q", kinds)
	}
}

// seeMoving: the row changes without the page being loaded again.
func seeMoving(t *testing.T, g *stage, b *tab) {
	eval[int](b, "window.loaded = 1")
	g.happens("orders", "o-1", "Order of Ada", map[string]any{"item": "ratchet wheel", "quantity": 3})
	b.until(`document.getElementById("lane-workflow-orders").innerText.includes("Needs attention")`)
	if eval[int](b, "window.loaded ?? 0") != 1 {
		t.Error("the page was loaded again")
	}
}

func approveOrder(t *testing.T, g *stage, b *tab) {
	b.press("orders")
	b.sees("Order 3 × ratchet wheel", "desk.post", `"quantity": 3`)
	b.sees("POST " + g.elsewhere + "/orders")
	b.press("Approve this call")
	b.sees("Approved.")
	b.sees("✓ Idle", "happened")
	if n := g.orders.Load(); n != 1 {
		t.Errorf("the order was placed %d times", n)
	}
}

func resolveUncertain(_ *testing.T, g *stage, b *tab) {
	g.happens("shipping", "p-1", "Parcel for Ada", map[string]any{"item": "ratchet wheel", "to": "Ada"})
	b.open("/workflows/shipping")
	b.sees("Did this happen?", "Ship ratchet wheel to Ada")
	b.press("It happened…")
	b.write("textarea[name=result]", "no json")
	b.allow("422")
	b.press("It happened")
	b.sees("The result is not JSON")
	b.press("It happened…")
	b.write("textarea[name=result]", `{"parcel": 7}`)
	b.press("It happened")
	b.sees("Recorded.", "✓ Idle", "happened")
}

func answerGraph(_ *testing.T, _ *stage, b *tab) {
	b.open("/approvals")
	b.sees("Publish the poem about autumn?", "evening-poet")
	b.do("answer", chromedp.SendKeys(chromedp.CSS("input[name=answer]"), "yes, gladly"))
	b.press("Answer")
	b.sees("Approved.", "Nothing is waiting for you.")
}

func runNowRefused(_ *testing.T, g *stage, b *tab) {
	b.open("/sources/prices")
	b.sees("Latest rows", "symbol")
	g.slow.Store(true)
	b.press("Run now")
	b.sees("Run requested.", "1 page · ")
	g.hold <- struct{}{}
	b.sees("2 pages · ")
	b.allow("409")
	b.press("Run now")
	b.until(`document.querySelector("[role=alert]")?.innerText.includes("prices")`)
	g.slow.Store(false)
	g.hold <- struct{}{}
	b.sees("✓ Idle")
	b.until(`document.querySelectorAll("#chart-rows tbody tr").length === 2 && !!document.querySelector(".chart canvas")`)
	b.press("Run now")
	b.until(`document.querySelectorAll("#chart-rows tbody tr").length === 3 && document.querySelectorAll(".chart canvas").length === 1`)
	b.open("/sources/prices/rejects")
	b.sees("day", "row ")
	b.open("/sources/prices/versions")
	b.sees("Version 1")
}

func pauseAndResume(t *testing.T, g *stage, b *tab) {
	b.open("/sources/prices")
	b.press("Pause")
	b.sees("Paused. Nothing more will be fetched.", "■ Stopped")
	b.press("Resume")
	b.sees("Resumed.", "Run now")
	b.open("/schedules/" + g.reports)
	b.press("Disable")
	b.sees("Disabled.", "none of these will run")
	b.press("Enable")
	b.sees("Enabled.", "✓ Idle")
	b.open("/?status=Stopped")
	b.sees("No matches.")
	if t.Failed() {
		t.Log(b.text())
	}
}

func backfill(t *testing.T, g *stage, b *tab) {
	b.open("/schedules/" + g.reports + "/backfills")
	day := time.Now().UTC().Truncate(24 * time.Hour)
	const form = "2006-01-02T15:04"
	b.do("fill the form", chromedp.SetValue(chromedp.CSS("input[name=from]"), day.AddDate(0, 0, -20).Format(form)),
		chromedp.SetValue(chromedp.CSS("input[name=to]"), day.Format(form)), chromedp.SetValue(chromedp.CSS("input[name=perMinute]"), "600"))
	b.press("Plan backfill")
	b.sees("20 slots will run", "did not run")
	b.press("Run 20 slots")
	b.sees("Backfill started.")
	b.until(`(v => v > 0 && v < 20)(document.querySelector("progress")?.value ?? 0)`)
	b.press("Pause")
	b.sees("Paused. No more slots will start.")
	b.press("Resume")
	b.until(`document.querySelector("progress").value === 20`)
	b.sees("✓ done", "20 of 20 slots", "✓ 20 done")
	b.open("/schedules/" + g.reports)
	b.sees("$0.0042", "backfill")
	b.open("/grants")
	b.sees("http:report", "$0.084")
	if !eval[bool](b, `!!document.querySelector(".chart canvas")`) {
		t.Error("there is no chart")
	}
}

// keyboardOnly goes from the first link to an action and back, without a mouse.
func keyboardOnly(t *testing.T, _ *stage, b *tab) {
	b.open("/workflows/inbox")
	key := func(keys string) { b.t.Helper(); b.do("press a key", chromedp.KeyEvent(keys)) }
	active := func() string { return eval[string](b, "document.activeElement.innerText.trim()") }
	key(kb.Tab)
	if active() != "Skip to content" {
		t.Fatalf("the first thing is %q", active())
	}
	key(kb.Enter)
	b.until(`document.activeElement.id === "main"`)
	for range 10 {
		if key(kb.Tab); active() == "Pause" {
			break
		}
	}
	if active() != "Pause" || !eval[bool](b, `document.activeElement.matches(":focus-visible")`) {
		t.Fatalf("the keyboard is at %q", active())
	}
	key(kb.Enter)
	b.sees("Paused. Nothing more will start.")
	b.until(`document.activeElement.classList.contains("notice")`) // what became of it is read out, and is where one goes on
	for range 10 {
		if key(kb.Tab); active() == "Resume" {
			break
		}
	}
	key(kb.Enter)
	b.sees("Resumed.")
}

// heldSlots makes a schedule whose slots were held up by a halt, and is the path of its page.
func (g *stage) heldSlots(b *tab) (path string) {
	var made client.Schedule
	g.must("POST", "/api/v1/schedules", map[string]any{"name": "held", "run": map[string]any{"job": map[string]any{"task": "log", "payload": map[string]any{}}}, "interval": "1s", "timezone": "UTC"}, &made)
	g.must("PUT", client.HaltPath, map[string]any{"note": "a look at the pages"}, nil)
	b.open("/schedules/" + made.ID)
	b.until("performance.now() > 2200")         // two of its slots came due
	g.call("DELETE", client.HaltPath, nil, nil) // which has nothing to say
	b.sees("missed: everything was halted")
	g.must("POST", "/api/v1/schedules/"+made.ID+"/pause", nil, nil) // what is seen stays on the page
	return "/schedules/" + made.ID
}

// narrowScreen: no page is wider than a phone.
func narrowScreen(t *testing.T, g *stage, b *tab) {
	g.happens("orders", "o-2", "Order of Grace", map[string]any{"item": strings.Repeat("pawl", 30), "quantity": 1})
	held := g.heldSlots(b)
	defer g.must("DELETE", "/api/v1"+held, nil, nil)
	b.size(360, 740, 2)
	defer b.size(1280, 860, 1)
	for _, path := range []string{
		held, "/", "/timeline", "/approvals", "/runs", "/jobs", "/jobs?task=log", "/grants", "/audit", "/tokens", "/workflows/orders", "/workflows/orders/outputs", "/workflows/orders/partitions", "/workflows/orders/runs",
		"/workflows/orders/versions", "/workflows/orders/why", "/sources/prices", "/sources/prices/rows", "/sources/prices/rejects", "/sources/prices/runs", "/sources/prices/versions",
		"/schedules/" + g.reports, "/schedules/" + g.reports + "/backfills", "/schedules/" + g.reports + "/why", "/schedules/" + g.reports + "/runs",
	} {
		b.open(path)
		if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > 360 {
			widest := eval[string](b, `[...document.querySelectorAll("#main *")].filter(e => e.getBoundingClientRect().right > 361).slice(0, 3).map(e => e.outerHTML.slice(0, 120)).join("\n")`)
			t.Errorf("%s is %d wide:\n%s", path, wide, widest)
		}
		if small := eval[string](b, `[...document.querySelectorAll("main button, main .button")].filter(e => e.offsetParent && e.getBoundingClientRect().height < 24).map(e => e.innerText).join(", ")`); small != "" {
			t.Errorf("%s: too small for a finger: %s", path, small)
		}
	}
	if title := fmt.Sprint(eval[string](b, "document.title")); !strings.Contains(title, "Pawl") {
		t.Errorf("title %q", title)
	}
}
