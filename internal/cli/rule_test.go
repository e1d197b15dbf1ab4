package cli

import (
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

const sheetRule = `{"workflow":"mail-to-sheet","tool":"sheet","method":"append","createdAt":"2026-01-01T00:00:00.000Z","createdBy":"ann"}`

func ruleAPI(t *testing.T) *fake {
	return newFake(t, map[string]fakeJSON{
		"GET /api/v1/workflows":                                                {200, `{"items":[{"name":"bills"},{"name":"gone"},{"name":"mail-to-sheet"}]}`},
		"GET /api/v1/workflows/bills/approvals/rules":                          {200, `{"items":[` + strings.Replace(sheetRule, "mail-to-sheet", "bills", 1) + `]}`},
		"GET /api/v1/workflows/mail-to-sheet/approvals/rules":                  {200, `{"items":[` + sheetRule + `]}`},
		"DELETE /api/v1/workflows/mail-to-sheet/approvals/rules/sheet/append":  {204, ``},
		"DELETE /api/v1/workflows/mail-to-sheet/approvals/rules/sheet/a/b.c":   {204, ``},
		"DELETE /api/v1/workflows/mail-to-sheet/approvals/rules/sheet/unknown": {404, "not_found"},
	})
}

// Whoever said always can see it, for one workflow and for all.
func TestRulesAreListed(t *testing.T) {
	f := ruleAPI(t)
	for _, args := range [][]string{{"get", "rules", "mail-to-sheet"}, {"get", "rules", "--workflow", "mail-to-sheet"}} {
		r := f.run(args...)
		r.expect(t, pawl.ExitDone)
		lines := strings.Split(r.stdout, "\n")
		if strings.Join(strings.Fields(lines[0]), " ") != "WORKFLOW TOOL METHOD SINCE SAID BY" || !strings.HasPrefix(lines[1], "mail-to-sheet   sheet   append   ") || len(lines) != 3 {
			t.Errorf("%v:\n%s", args, r.stdout)
		}
	}
	r := f.run("get", "rules")
	if r.expect(t, pawl.ExitDone); strings.Count(r.stdout, "sheet   append") != 2 || !strings.Contains(r.stdout, "bills ") {
		t.Errorf("those of all:\n%s", r.stdout)
	}
	r = f.run("get", "rules", "--limit", "1")
	if r.expect(t, pawl.ExitDone, "There are more"); strings.Count(r.stdout, "append") != 1 {
		t.Errorf("limited:\n%s", r.stdout)
	}
}

// A rule is revoked by its three names, or as approvals show it.
func TestRulesAreRevoked(t *testing.T) {
	for _, args := range [][]string{{"mail-to-sheet", "sheet", "append"}, {"mail-to-sheet", "sheet.append"}} {
		f := ruleAPI(t)
		r := f.run(append([]string{"delete", "rule"}, args...)...)
		r.expect(t, pawl.ExitDone)
		if r.stdout != "rule mail-to-sheet sheet.append revoked; it is asked for again\n" || f.requests() != "DELETE /api/v1/workflows/mail-to-sheet/approvals/rules/sheet/append" {
			t.Errorf("%v: said %s asked %s", args, r.stdout, f.requests())
		}
	}
	f := ruleAPI(t)
	f.run("delete", "rule", "mail-to-sheet", "sheet", "a/b.c").expect(t, pawl.ExitDone)
	if f.requests() != "DELETE /api/v1/workflows/mail-to-sheet/approvals/rules/sheet/a%2Fb.c" {
		t.Error(f.requests())
	}
	f.run("delete", "rule", "mail-to-sheet", "sheet", "unknown").expect(t, pawl.ExitNotFound)
	f.run("delete", "rule", "mail-to-sheet", "sheet").expect(t, pawl.ExitUsage, "Usage: pawl delete rule WORKFLOW TOOL METHOD")
	f.run("delete", "rule", "mail-to-sheet", "sheet", "..").expect(t, pawl.ExitUsage, "names nothing")
	f.run("delete", "job", "1", "2").expect(t, pawl.ExitUsage, `does not take "2"`)
}
