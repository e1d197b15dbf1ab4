package workflow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"

	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/terms"
)

// Deploy is a script to put in force.
type Deploy struct {
	Name     string // what the caller takes it for; empty takes the script's word
	Filename string
	Script   string
	By       string // who, for versions and the audit log
	DryRun   bool   // tell what would happen, and change nothing

	// Expect refuses the deploy by the version that is in force, empty if there is
	// none; it is asked in the transaction that changes it. Nil expects nothing.
	Expect func(inForce string) error

	// Permit refuses the deploy by what the script declares. Nil permits everything.
	Permit func(Config) error

	confined bool                  // auto-fix made it, and no person looked at its text
	rights   []workflowstore.Right // that a person gives by deploying it
}

// What a deploy did.
const (
	Created   = "created"
	Updated   = "updated"
	Unchanged = "unchanged"
)

// Deployed is what a deploy did.
type Deployed struct {
	Name     string
	What     string // Created, Updated or Unchanged
	Version  string
	Previous string // the source that was in force before; empty for a new workflow
	Before   string // its version
	Config   Config
	Warnings []script.Diagnostic
}

// VersionOf is the identity of a script: its content, and whether it is
// TypeScript. It does not depend on the tools that run it.
func VersionOf(filename, source string) string {
	ext := path.Ext(filename)
	kind := "ts\n"
	if ext == ".js" || ext == ".mjs" || ext == ".cjs" {
		kind = "js\n"
	}
	sum := sha256.Sum256([]byte(kind + source))
	return hex.EncodeToString(sum[:])
}

// Inspect compiles a script and checks what it declares, without a store. Its
// errors carry places.
func Inspect(ctx context.Context, scripts Scripts, filename, source string) (Config, *script.Program, error) {
	program, err := scripts.Compile(ctx, filename, source)
	if err != nil {
		return Config{}, nil, err
	}
	d, err := scripts.Describe(ctx, program)
	if err != nil {
		return Config{}, nil, loadFault(filename, err)
	}
	config, err := Check(filename, source, d)
	if err != nil {
		return config, program, err
	}
	program.Warnings = append(program.Warnings, advice(filename, source, &config)...) // it is ours: Compile made it
	return config, program, nil
}

// loadFault tells of a script whose top level failed as of any other fault.
func loadFault(filename string, err error) error {
	d := script.Diagnostic{Message: err.Error()}
	switch e := err.(type) { //nolint:errorlint // these are what Describe returns, not wrapped
	case *script.Thrown:
		d.Place, d.Message = e.Place, strings.TrimPrefix(e.Error(), e.Place.String()+": ")
	case *script.LimitError:
		d.Place, d.Message = e.Place, strings.TrimPrefix(e.Error(), e.Place.String()+": ")
		d.Hint = "the top level of a script only declares; put work into handlers"
	default:
		if script.Class(err) == pawl.ClassInternal {
			return err
		}
	}
	if d.File == "" {
		d.File = filename
	}
	if d.Line == 0 {
		d.Line, d.Column = 1, 1
	}
	return &pawl.Error{
		Code: pawl.CodeInvalid, Op: "load " + filename, Msg: "the script cannot be loaded", Hint: d.Hint, Err: script.Diagnostics{d},
		Fields: []pawl.Field{{Pointer: "/script", Message: d.String()}},
	}
}

// Apply deploys a script: checked as a whole, stored as a version, and put in
// force together with its schedules in one transaction. The same
// content again changes nothing. A refused script changes nothing either.
func (s *Service) Apply(ctx context.Context, d Deploy) (Deployed, error) {
	config, program, err := Inspect(ctx, s.cfg.Scripts, d.Filename, d.Script)
	if err != nil {
		return Deployed{}, err
	}
	if d.Name != "" && d.Name != config.Name {
		return Deployed{}, &pawl.Error{
			Code: pawl.CodeInvalid, Op: "deploy workflow", Msg: fmt.Sprintf("the script calls itself %q, not %q", config.Name, d.Name),
			Hint:   "Use the name of the script.",
			Fields: []pawl.Field{{Pointer: "/script", Message: fmt.Sprintf("name is %q", config.Name)}},
		}
	}
	if d.Permit != nil {
		if err := d.Permit(config); err != nil {
			return Deployed{}, err
		}
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return Deployed{}, err
	}
	out := Deployed{Name: config.Name, Version: VersionOf(d.Filename, d.Script), Config: config}
	out.Warnings = append(program.Warnings, missingConnections(d.Filename, d.Script, s.cfg.Tools)...)
	d.rights = declared(out.Version, program.JavaScript())
	write := s.db.Write
	if d.DryRun {
		write = func(ctx context.Context, fn store.Func, _ ...store.Option) error { return s.db.Read(ctx, fn) }
	}
	err = write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return s.deploy(ctx, tx, d, raw, &out)
	})
	return out, err
}

func (s *Service) deploy(ctx context.Context, tx *store.Tx, d Deploy, raw json.RawMessage, out *Deployed) error {
	hold := workflowstore.In(tx).HoldWorkflow
	if d.DryRun {
		hold = workflowstore.In(tx).WorkflowByName
	}
	plans, err := s.planProducers(ctx, tx, d, out.Config)
	if err != nil {
		return err
	}
	if err := s.checkNeeds(ctx, tx, d, out.Config); err != nil {
		return err
	}
	w, err := hold(ctx, out.Name)
	out.What, out.Before = Updated, w.Version
	if d.Expect != nil && (err == nil || errors.Is(err, pawl.ErrNotFound)) {
		if wrong := d.Expect(out.Before); wrong != nil {
			return wrong
		}
	}
	switch {
	case errors.Is(err, pawl.ErrNotFound):
		out.What = Created
		if err := s.checkPlans(ctx, tx, d, out.Config, "", plans); err != nil || d.DryRun {
			return err
		}
		if w, err = workflowstore.In(tx).InsertWorkflow(ctx, out.Name, out.Version); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		was, err := workflowstore.In(tx).GetWorkflowVersion(ctx, w.ID, w.Version)
		if err != nil {
			return err
		}
		out.Previous = was.Source
		if w.Version == out.Version {
			out.What = Unchanged
		} else if err := s.checkPlans(ctx, tx, d, out.Config, w.ID, plans); err != nil {
			return err
		}
	}
	if d.DryRun {
		return nil
	}
	if out.What == Unchanged {
		return s.agree(ctx, tx, w, d, out.Version)
	}
	before, err := s.configBefore(ctx, tx, w, out.What)
	if err != nil {
		return err
	}
	version := workflowstore.WorkflowVersion{WorkflowID: w.ID, Version: out.Version, Filename: d.Filename, Source: d.Script, Config: raw, CreatedBy: d.By, Confined: d.confined}
	if err := workflowstore.In(tx).AddWorkflowVersion(ctx, version); err != nil {
		return err
	}
	if !d.confined {
		if _, err := workflowstore.In(tx).FreeWorkflowVersion(ctx, w.ID, out.Version); err != nil {
			return err
		}
		if err := workflowstore.In(tx).AddRights(ctx, w.ID, d.rights); err != nil {
			return err
		}
	}
	if err := workflowstore.In(tx).SetWorkflowVersion(ctx, w.ID, out.Version); err != nil {
		return err
	}
	if err := s.endMistyped(ctx, tx, w); err != nil {
		return err
	}
	return s.putInForce(ctx, tx, w, before, out, plans, d.By)
}

// endMistyped ends a run that waits for a connection: it would go on with the
// old script, and the new one may use another. Nothing was sent, so what it was
// about is done afresh.
func (s *Service) endMistyped(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) error {
	parts, err := s.openParts(ctx, tx, w)
	if err != nil {
		return err
	}
	lanes := []string{w.Lane}
	for _, p := range parts {
		lanes = append(lanes, runstore.PartLane(w.Lane, p.ID))
	}
	for _, lane := range lanes {
		if err := s.endMistypedIn(ctx, tx, lane); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) endMistypedIn(ctx context.Context, tx *store.Tx, lane string) error {
	r, err := runstore.In(tx).NewestRun(ctx, pawl.KindWorkflow, lane)
	if errors.Is(err, pawl.ErrNotFound) || err == nil && (r.Status != pawl.StatusPausedApproval || r.ErrorCode != codeNoConnection) {
		return nil
	}
	if err == nil {
		_, err = s.endRun(ctx, tx, r)
	}
	return err
}

// agree notes that a person deployed what is in force already. That changes
// nothing, unless auto-fix had made it: from now on it is theirs.
func (s *Service) agree(ctx context.Context, tx *store.Tx, w workflowstore.Workflow, d Deploy, version string) error {
	if d.confined {
		return nil
	}
	news, err := workflowstore.In(tx).FreeWorkflowVersion(ctx, w.ID, version)
	if err != nil || !news {
		return err
	}
	if err := workflowstore.In(tx).AddRights(ctx, w.ID, d.rights); err != nil {
		return err
	}
	tx.AfterCommit(func() { s.configs.invalidate(w.ID) })
	if err := tx.Audit(ctx, d.By, "workflow.agree", "workflow:"+w.Name, map[string]string{"version": version}); err != nil {
		return err
	}
	return s.arm(ctx, tx, w, tx.Now)
}

func (s *Service) configBefore(ctx context.Context, tx *store.Tx, w workflowstore.Workflow, what string) (Config, error) {
	if what == Created {
		return Config{}, nil
	}
	v, err := workflowstore.In(tx).GetWorkflowVersion(ctx, w.ID, w.Version)
	if err != nil {
		return Config{}, err
	}
	return parseConfig(v.Config)
}

// putInForce makes topics, schedules and consumers those of a new version, and
// wakes the lane.
func (s *Service) putInForce(ctx context.Context, tx *store.Tx, w workflowstore.Workflow, before Config, out *Deployed, plans map[string]planned, by string) error {
	config := out.Config
	if err := eventstore.In(tx).EnsureTopics(ctx, w.ID, config.Topics); err != nil {
		return err
	}
	if err := eventstore.In(tx).SetSubscribed(ctx, w.ID, config.subscribed()); err != nil {
		return err
	}
	for _, p := range config.Producers {
		if err := workflowstore.In(tx).PutProducerSchedule(ctx, scheduleRow(w.ID, p, plans[p.Name], plans[p.Name].firstRun(tx.Now))); err != nil {
			return err
		}
	}
	for _, p := range before.Producers {
		if _, ok := config.Producer(p.Name); !ok {
			if err := workflowstore.In(tx).DeleteProducerSchedule(ctx, w.ID, p.Name); err != nil {
				return err
			}
		}
	}
	if !w.Partitioned && len(config.partitioned()) > 0 {
		if err := workflowstore.In(tx).SetWorkflowPartitioned(ctx, w.ID); err != nil {
			return err
		}
	}
	if err := wakeConsumers(ctx, tx, w.ID, before, config); err != nil {
		return err
	}
	if _, err := runstore.In(tx).HoldRetry(ctx, pawl.KindWorkflow, w.Lane); err != nil { // registers the lane
		return err
	}
	if err := runstore.In(tx).SetKeep(ctx, pawl.KindWorkflow, w.Lane, terms.KeepText(config.Keep)); err != nil {
		return err
	}
	if err := runstore.In(tx).SetExpect(ctx, pawl.KindWorkflow, w.Lane, terms.ExpectText(config.Expect)); err != nil {
		return err
	}
	if !terms.SameNeeds(before.Needs, config.Needs) {
		if err := s.cfg.Needs.Declare(ctx, tx, pawl.KindWorkflow, w.Lane, config.Needs); err != nil {
			return err
		}
	}
	if err := tx.Audit(ctx, by, "workflow.deploy", "workflow:"+w.Name, map[string]string{"version": out.Version, "what": out.What}); err != nil {
		return err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(w.Name), What: "deployed"})
	return s.changed(ctx, tx, w)
}

// scheduleRow is the row of a producer's schedule.
func scheduleRow(workflowID string, p Producer, by planned, next time.Time) workflowstore.ProducerSchedule {
	return workflowstore.ProducerSchedule{
		WorkflowID: workflowID, Producer: p.Name, Type: p.Schedule.Type(), Value: p.Schedule.Value(), Timezone: p.Schedule.Timezone,
		Timing: p.Schedule.timing(), Plan: by.plan.Encode(), NextRunAt: next,
	}
}

// wakeConsumers makes consumers that are new, or subscribe to something else,
// run their prepare at once, and forgets the wakeAt of those that are gone
//
func wakeConsumers(ctx context.Context, tx *store.Tx, workflowID string, before, config Config) error {
	for _, c := range config.Consumers {
		was, ok := before.Consumer(c.Name)
		if ok && sameTopics(was.Subscribe, c.Subscribe) && was.Partitioned() == c.Partitioned() {
			continue
		}
		if c.Partitioned() { // its partitions wake by themselves
			if err := workflowstore.In(tx).SetWakeAt(ctx, workflowID, c.Name, time.Time{}); err != nil {
				return err
			}
			continue
		}
		if err := workflowstore.In(tx).SetWakeAt(ctx, workflowID, c.Name, tx.Now); err != nil {
			return err
		}
	}
	for _, c := range before.Consumers {
		if _, ok := config.Consumer(c.Name); ok {
			continue
		}
		if err := workflowstore.In(tx).SetWakeAt(ctx, workflowID, c.Name, time.Time{}); err != nil {
			return err
		}
	}
	return nil
}

func sameTopics(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}
