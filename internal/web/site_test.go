package web

import (
	"io/fs"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/client"
)

// Every page has the policy, and nothing that the policy would refuse; every
// asset that a page names is there.
func TestPagesKeepToTheirPolicy(t *testing.T) {
	r := onSQLite(t)
	r.deploy("asks", "ask", "o-1")
	asking := r.waitWord("asks", "Needs attention")
	r.fetching("prices", "/prices")
	r.waitLane("source", "prices", "Idle")
	id := r.schedule("poems", "poet", "30 2 * * *")
	r.waitLane("schedule", id, "Idle")
	var plan backfillView
	r.ask("POST", "/api/v1/schedules/"+id+"/backfill", map[string]any{"from": "2026-01-01T00:00:00Z", "to": "2026-01-09T00:00:00Z"}, &plan)
	b := r.signedIn(r.admin)
	paths := append(pagePaths(), "/sources/prices", "/sources/prices/rows", "/sources/prices/rejects", "/sources/prices/runs", "/sources/prices/versions",
		"/schedules/"+id, "/schedules/"+id+"/why", "/schedules/"+id+"/runs", "/schedules/"+id+"/backfills", "/backfills/"+plan.ID, "/workflows/asks", "/workflows/asks/outputs", "/workflows/asks/partitions", "/workflows/asks/runs", "/workflows/asks/versions",
		"/workflows/asks/why", "/runs/"+asking.ID, "/signin?code=x", "/runs/none", "/workflows/none", "/jobs/1", "/jobs/x", "/assets/none")
	inline := regexp.MustCompile(`(?i)<style|<script(?: [^>]*)?>[^<]|\sstyle=|\son[a-z]+="|javascript:`)
	asset := regexp.MustCompile(`(?:src|href)="(/assets/[^"]+)"`)
	away := regexp.MustCompile(`(?:src|href|action|hx-get|hx-post)="(?:https?:)?//`)
	seen := map[string]bool{}
	for _, path := range paths {
		p := b.get(path)
		if p.header.Get("Content-Security-Policy") != pagePolicy || p.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", path, p.header)
		}
		if found := inline.FindString(p.body); found != "" {
			t.Errorf("%s has %q, which the policy refuses", path, found)
		}
		if found := away.FindString(p.body); found != "" {
			t.Errorf("%s leads elsewhere: %q", path, found)
		}
		for _, m := range asset.FindAllStringSubmatch(p.body, -1) {
			seen[m[1]] = true
		}
	}
	for path := range seen {
		p := b.get(path).want(http.StatusOK)
		if !strings.Contains(p.header.Get("Cache-Control"), "immutable") || p.header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: headers %v", path, p.header)
		}
	}
	if len(seen) < 6 {
		t.Errorf("pages name the assets %v only", seen)
	}
}

func TestVendoredAssetsHaveTheirLicences(t *testing.T) {
	var names []string
	err := fs.WalkDir(assetFiles, "assets/vendor", func(name string, e fs.DirEntry, err error) error {
		names = append(names, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(names, " ")
	for _, licence := range []string{"htmx.LICENSE.txt", "uplot.LICENSE.txt"} {
		if !strings.Contains(all, licence) {
			t.Errorf("%s is missing in %s", licence, all)
		}
	}
}

func TestWritesOfOtherSitesAreRefused(t *testing.T) {
	r := onSQLite(t)
	r.deploy("asks", "ask")
	b := r.signedIn(r.admin)
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Sec-Fetch-Site", "", "Origin", "https://evil.example"},
	} {
		p := b.do("POST", "/workflows/asks/pause", map[string][]string{"back": {"/"}}, headers...)
		p.want(http.StatusForbidden).has("another site")
	}
	var w client.Workflow
	r.ask("GET", "/api/v1/workflows/asks", nil, &w)
	if w.Paused {
		t.Error("it was carried out nevertheless")
	}
}

func TestUnknownPagesAreNotFound(t *testing.T) {
	r := onSQLite(t)
	b := r.signedIn(r.admin)
	for _, path := range []string{"/nothing", "/workflows", "/workflows/none", "/workflows/%3Cb%3E", "/runs/none", "/runs/%00", "/jobs/none", "/workflows/a/b/c", "/assets/../site.go", "/assets/vendor"} {
		p := b.get(path)
		if p.status != http.StatusNotFound && p.status != http.StatusTemporaryRedirect && p.status != http.StatusMovedPermanently {
			t.Errorf("%s: %d", path, p.status)
		}
		p.hasNot("<b>")
	}
	b.get("/nothing").want(http.StatusNotFound).has("There is no page at /nothing")
}

// Programs keep their answers at the same port.
func TestProgramsReachTheAPI(t *testing.T) {
	r := onSQLite(t)
	b := r.browser()
	b.get("/healthz").want(http.StatusOK)
	b.get("/api/v1/lanes").want(http.StatusUnauthorized).has(`"code":"unauthorized"`)
	b.do("GET", "/nothing", nil, "Accept", "application/json", "Authorization", "Bearer "+r.admin).want(http.StatusNotFound).has(`"code":"not_found"`)
}

func TestPagesTakeNonsense(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("asks", "ask", "o-1")
		run := r.waitWord("asks", "Needs attention")
		b := r.signedIn(r.admin)
		for _, path := range []string{
			"/?cursor=x", "/?cursor=workflow:zzz", "/?kind=none&status=none", "/?q=%25%5C_%27%22%3Cb%3E", "/?q=" + strings.Repeat("x", 5000), "/?q=%ff",
			"/runs?status=none", "/runs?cursor=x", "/runs?lane=%00", "/jobs?cursor=x", "/jobs?state=none", "/approvals?state=none", "/audit?cursor=x", "/audit?cursor=-1",
			"/tokens?users=%ff&cursor=x", "/workflows/asks?status=none", "/workflows/asks?cursor=x", "/workflows/asks/versions?show=99&against=x", "/workflows/asks/versions?show=-1",
			"/timeline?span=x&cursor=x&kind=none", "/timeline?cursor=schedule:%00", "/grants?cursor=x&all=no", "/sources/none", "/sources/%00/rows", "/sources/none/versions?show=x",
			"/schedules/none", "/schedules/%ff/backfills", "/backfills/%3Cb%3E", "/?kind=schedule&cursor=schedule:x+y&q=%ff",
		} {
			if p := b.get(path); p.status >= http.StatusInternalServerError {
				t.Errorf("%s: %d %s", path, p.status, p.body)
			}
		}
		for _, form := range [][]string{
			{"/runs/" + run.ID + "/approve", "hash", "wrong", "back", "//evil.example"},
			{"/runs/" + run.ID + "/resolve", "outcome", "none", "back", "%zz"},
			{"/runs/none/cancel", "back", "/nothing"},
			{"/inputs/none/skip"},
			{"/jobs/x/cancel"}, {"/jobs/1/retry", "back", "/jobs"},
			{"/tokens", "name", "", "allow", "other", "scopes", "no such", "expiresIn", "x", "user", "\x00"},
			{"/tokens/none/revoke"},
			{"/workflows/none/run"}, {"/sources/none/run"}, {"/sources/%ff/reset", "all", "x"}, {"/schedules/none/run"}, {"/schedules/none/enable"},
			{"/schedules/none/backfill", "from", "2026-01-01T00:00", "to", "2026-01-02T00:00", "perMinute", "x"}, {"/backfills/none/confirm", "hash", ""}, {"/backfills/none/cancel"},
			{"/grants", "graphs", "\x00", "days", "1e9"}, {"/grants/none/revoke"},
		} {
			p := b.post(form[0], form[1:]...)
			if p.status < 400 || p.status >= 500 {
				t.Errorf("%v: %d", form, p.status)
			}
		}
	})
}
