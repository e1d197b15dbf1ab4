package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// A person reads one question, another one comes, and the click reaches the one
// that was read: decisions do not move under the pointer, and what did move
// cannot be pressed yet.
func TestAClickReachesTheCallThatWasRead(t *testing.T) {
	g := newStage(t)
	b := openTab(t, g.url)
	signIn(t, g, b)
	for _, name := range []string{"payments", "refunds"} {
		g.must("PUT", "/api/v1/workflows/"+name, map[string]any{"script": acting(name, "desk", "/orders", "Pay ${e.payload.amount} EUR"), "filename": name + ".workflow.ts"}, nil)
	}
	b.open("/approvals")
	b.sees("Publish the poem about autumn?")
	steps := []struct {
		name string
		step func(t *testing.T, g *stage, b *tab)
	}{
		{"a later question comes below", laterComesBelow},
		{"nothing moves under the pointer", holdsUnderPointer},
		{"what has just moved takes no click", ignoresAfterShift},
		{"always is a second step", alwaysTakesTwoSteps},
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
}

// pays has a workflow ask whether it may pay.
func (g *stage) pays(workflow string, amount int) {
	g.t.Helper()
	id := fmt.Sprint(workflow, amount)
	g.happens(workflow, id, id, map[string]any{"amount": amount})
}

// paid reports whether an amount was paid.
func (g *stage) paid(amount int) bool {
	_, ok := g.placed.Load(fmt.Sprintf(`{"amount":%d}`, amount))
	return ok
}

// approves answers the question of a workflow as somebody else would, elsewhere.
func (g *stage) approves(workflow string) {
	g.t.Helper()
	var list struct {
		Items []struct {
			RunID string `json:"runId"`
		} `json:"items"`
	}
	g.must("GET", "/api/v1/approvals?workflow="+workflow, nil, &list)
	if len(list.Items) != 1 {
		g.t.Fatalf("%s asks %d questions", workflow, len(list.Items))
	}
	g.must("POST", "/api/v1/runs/"+list.Items[0].RunID+"/approve", nil, nil)
}

// cardOf is the question about an amount, in JavaScript.
func cardOf(amount int) string {
	return fmt.Sprintf(`[...document.querySelectorAll("section.card")].find(e => e.innerText.includes("Pay %d EUR"))`, amount)
}

// buttonOf is where the middle of the button is that approves an amount.
func (b *tab) buttonOf(amount int) (x, y float64) {
	b.t.Helper()
	b.until("!!" + cardOf(amount))
	eval[bool](b, "("+cardOf(amount)+`.scrollIntoView({ block: "center" }), true)`)
	at := eval[[]float64](b, fmt.Sprintf(`(r => [r.x + r.width / 2, r.y + r.height / 2])([...%s.querySelectorAll("button")].find(e => e.innerText.trim() === "Approve this call").getBoundingClientRect())`, cardOf(amount)))
	return at[0], at[1]
}

// rests waits until nothing has moved for a second.
func (b *tab) rests() { b.t.Helper(); b.until("!document.documentElement.dataset.moved") }

// badge waits until the menu and the title count what waits.
func (b *tab) badge(n int) {
	b.t.Helper()
	b.until(fmt.Sprintf(`(document.querySelector(".nav .badge")?.innerText ?? "").startsWith("%d") && document.title.startsWith("(%d) ")`, n, n))
}

// leaves moves the pointer away from everything.
func (b *tab) leaves() {
	b.t.Helper()
	b.do("move away", chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 2, 2))
}

func laterComesBelow(t *testing.T, g *stage, b *tab) {
	g.pays("payments", 10)
	x, y := b.buttonOf(10)
	b.badge(2)
	g.pays("refunds", 99999)
	b.sees("Pay 99999 EUR")
	b.badge(3)
	b.rests()
	b.shots("approvals")
	b.do("click where the button was", chromedp.MouseClickXY(x, y))
	b.sees("Approved.")
	g.eventually("10 EUR are paid", func() bool { return g.paid(10) })
	if g.paid(99999) {
		t.Error("the click paid 99999 EUR")
	}
}

func holdsUnderPointer(t *testing.T, g *stage, b *tab) {
	b.leaves()             // the pointer is where the next question came to lie
	g.pays("payments", 20) // below the 99999
	b.sees("Pay 20 EUR")
	b.rests()
	x, y := b.buttonOf(20)
	b.do("move to the button", chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y))
	g.approves("refunds") // what is above goes
	b.until(`!document.getElementById("held").hidden`)
	b.badge(2) // which is out of the way
	if nowX, nowY := b.buttonOf(20); nowX != x || nowY != y {
		t.Errorf("the button moved from %v, %v to %v, %v", x, y, nowX, nowY)
	}
	b.leaves()
	b.until("!" + cardOf(99999))
	b.until(`document.getElementById("held").hidden`)

	b.do("put the keyboard there", chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`%s.querySelector("button").focus()`, cardOf(20))))
	g.pays("refunds", 21)
	b.until(`!document.getElementById("held").hidden`)
	if eval[bool](b, "!!"+cardOf(21)) {
		t.Error("the page changed while the keyboard was in a decision")
	}
	b.do("leave it", chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`))
	b.sees("Pay 21 EUR")
	if g.paid(20) || g.paid(21) {
		t.Error("something was paid that nobody approved")
	}
}

func ignoresAfterShift(t *testing.T, g *stage, b *tab) {
	b.rests()
	// As soon as the first question is gone, something clicks on the one that
	// takes its place.
	eval[bool](b, fmt.Sprintf(`(() => {
		const gone = () => { if (%s) return; watch.disconnect(); const next = [...%s.querySelectorAll("button")].find(e => e.innerText.trim() === "Approve this call"); next.click(); window.hit = true; };
		const watch = new MutationObserver(gone);
		watch.observe(document.getElementById("main"), { childList: true, subtree: true });
		return true;
	})()`, cardOf(20), cardOf(21)))
	g.approves("payments")
	b.until("!!window.hit")
	g.eventually("20 EUR are paid", func() bool { return g.paid(20) })
	b.rests()
	b.sees("Pay 21 EUR")
	if g.paid(21) {
		t.Fatal("the click after the shift paid 21 EUR")
	}
	x, y := b.buttonOf(21)
	b.do("click again", chromedp.MouseClickXY(x, y))
	g.eventually("21 EUR are paid", func() bool { return g.paid(21) })
}

func alwaysTakesTwoSteps(t *testing.T, g *stage, b *tab) {
	rules := func() int {
		var list struct {
			Items []json.RawMessage `json:"items"`
		}
		g.must("GET", "/api/v1/workflows/payments/approvals/rules", nil, &list)
		return len(list.Items)
	}
	b.leaves()
	g.pays("payments", 30)
	b.sees("Pay 30 EUR", "POST "+g.elsewhere+"/orders")
	b.press("Approve always…")
	b.sees("workflow payments will call desk.post", "pawl delete rule payments desk.post")
	b.shots("always")
	if n := rules(); n != 0 || g.paid(30) {
		t.Fatalf("one step made %d rules", n)
	}
	b.press("Approve all such calls")
	b.sees("no longer asks before this call")
	g.pays("payments", 31)
	g.eventually("31 EUR are paid", func() bool { return g.paid(31) })
	b.open("/workflows/payments/why")
	b.sees("Standing approvals", "desk.post")
	b.press("Revoke")
	b.sees("Revoked.", "No calls are always approved")
	if n := rules(); n != 0 {
		t.Errorf("%d rules are left", n)
	}
}

// shots writes pictures of the page for whoever wants to look at it, in both
// schemes and two widths, into the folder that the environment names.
func (b *tab) shots(name string) {
	b.t.Helper()
	dir := os.Getenv("PAWL_SHOTS")
	if dir == "" {
		return
	}
	for _, width := range []int64{1280, 390} {
		b.size(width, 860, 1)
		for _, scheme := range []string{"light", "dark"} {
			b.scheme(scheme)
			picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			if err != nil {
				b.t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), picture, 0o600); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	b.scheme("light")
	b.size(1280, 860, 1)
}
