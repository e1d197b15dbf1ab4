package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// report is everything that a run found out.
type report struct {
	Facts   facts     `json:"facts"`
	Quick   bool      `json:"quick"`
	Waiting int       `json:"waiting,omitempty"` // instead of the million that a title names
	Results []result  `json:"results"`
	Targets []verdict `json:"targets"`
	suite   suite
}

func (run *report) find(scenarioName, subjectName string) (result, bool) {
	for _, r := range run.Results {
		if r.Scenario == scenarioName && r.Subject == subjectName {
			return r, true
		}
	}
	return result{}, false
}

func (run *report) value(scenarioName, subjectName, key string) (float64, bool) {
	r, _ := run.find(scenarioName, subjectName)
	v, ok := r.Values[key]
	return v, ok
}

// failed reports whether anything that took part has no numbers.
func (run *report) failed() bool {
	for _, r := range run.Results {
		if r.Error != "" {
			return true
		}
	}
	return false
}

// markdown writes the whole report.
func (run *report) markdown() string {
	var w strings.Builder
	fmt.Fprintf(&w, "# %s\n\n", run.suite.title)
	w.WriteString("Written by `make " + run.suite.target + "`; [README.md](README.md) says what is measured and how, and what is " +
		"unfair to whom. One run, one machine, one PostgreSQL, full durability.\n\n")
	if run.Quick {
		w.WriteString("**A quick run: a tenth of the sizes that the titles name. Do not quote it.**\n\n")
	}
	if run.Waiting > 0 {
		fmt.Fprintf(&w, "**%s jobs wait in the crowded lane, not a million.**\n\n", number(float64(run.Waiting), 0))
	}
	run.Facts.markdown(&w)
	run.targetsTable(&w)
	for _, s := range run.suite.scenarios {
		if run.has(s.name) {
			run.scenarioTable(&w, s)
		}
	}
	run.contenderTable(&w)
	return w.String()
}

func (run *report) has(scenarioName string) bool {
	for _, r := range run.Results {
		if r.Scenario == scenarioName {
			return true
		}
	}
	return false
}

func (run *report) targetsTable(w *strings.Builder) {
	w.WriteString("## Targets\n\n| target | wanted | measured | |\n|---|--:|--:|---|\n")
	for _, v := range run.Targets {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", v.What, v.Wanted, v.Measured, v.Status)
	}
	w.WriteString("\n")
}

func (run *report) contenderTable(w *strings.Builder) {
	w.WriteString("## Configurations\n\n| | store | configuration |\n|---|---|---|\n")
	for _, c := range run.suite.contenders {
		fmt.Fprintf(w, "| %s | %s | %s |\n", c.title, c.store, c.about)
	}
}

func (run *report) writeJSON(name string) error {
	text, err := json.MarshalIndent(run, "", "  ")
	if err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}
