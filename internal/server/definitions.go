package server

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/workflow"
)

// applyDefinitions deploys the workflows in the folders that the server was
// started with. What is wrong with one is told with its place, and changes
// nothing: the version that is in force stays.
func (s *server) applyDefinitions(ctx context.Context) error {
	for _, dir := range s.cfg.Dirs {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name := entry.Name()
			if entry.IsDir() && path != dir && (strings.HasPrefix(name, ".") || name == "node_modules") {
				return filepath.SkipDir
			}
			if entry.IsDir() || !strings.HasSuffix(name, ".workflow.ts") && !strings.HasSuffix(name, ".workflow.js") {
				return nil
			}
			return s.applyWorkflow(ctx, path)
		})
		if err != nil {
			return &pawl.Error{Code: pawl.CodeInvalid, Op: "apply definitions", Msg: "the folder " + dir + " cannot be read", Err: err}
		}
	}
	return nil
}

func (s *server) applyWorkflow(ctx context.Context, path string) error {
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	out, err := s.flows.Apply(ctx, workflow.Deploy{Filename: filepath.Base(path), Script: string(source), By: "serve"})
	if err == nil {
		s.log.Info("a workflow of a folder was applied", "name", out.Name, "what", out.What, "file", path)
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*pawl.Error](err); ok && e.Code == pawl.CodeInvalid {
		for _, f := range e.Fields {
			s.log.Error("a definition is not valid", "file", path, "fault", f.Message, "hint", e.Hint)
		}
		return nil
	}
	return err
}
