package demo

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/examples"
	"github.com/pawlrun/pawl/internal/cli/client"
)

// letters is a workflow, the one of examples/letters: what lies in the inbox is
// entered into the book, every letter once, although the inbox is looked into
// again and again.
func letters() scene {
	return scene{name: "letters", promise: "a workflow does every thing once, however often it looks", play: playLetters}
}

// furnish lays out the connections of the letters in the folder of the demo.
func furnish(dir string) (connections string, err error) {
	connections = filepath.Join(dir, "letters")
	if err := os.MkdirAll(filepath.Join(connections, "inbox"), 0o700); err != nil {
		return "", fmt.Errorf("make the inbox: %w", err)
	}
	text, err := fs.ReadFile(examples.Letters, "letters/connections.yaml")
	if err == nil {
		err = os.WriteFile(filepath.Join(connections, "connections.yaml"), text, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("write the connections: %w", err)
	}
	return connections, nil
}

func playLetters(ctx context.Context, s *stage) (string, error) {
	source, err := fs.ReadFile(examples.Letters, "letters/letters.workflow.ts")
	if err != nil {
		return "", err
	}
	var want []string
	for n := range 3 {
		name := fmt.Sprintf("round-%d-letter-%d.txt", s.round, n+1)
		text := fmt.Sprintf("Dear Pawl, this is letter %d of round %d.", n+1, s.round)
		if err := os.WriteFile(filepath.Join(s.letters, "inbox", name), []byte(text+"\n"), 0o600); err != nil {
			return "", err
		}
		want = append(want, name+": "+text)
	}
	deployed, err := s.api.Apply(ctx, "letters", client.Deploy{Script: string(source), Filename: "letters.workflow.ts"})
	if err != nil {
		return "", s.ended(ctx, fmt.Errorf("deploy the workflow: %w", err))
	}
	s.story.note("deployed", "workflow letters, "+deployed.What)
	if err := s.awaitLines(ctx, want); err != nil {
		return "", err
	}
	// The inbox is looked into once more; nothing may come of that.
	if err := pause(ctx, 2500*time.Millisecond); err != nil {
		return "", s.ended(ctx, err)
	}
	lines, err := s.bookLines()
	if err != nil {
		return "", err
	}
	for _, line := range want {
		if n := count(lines, line); n != 1 {
			return "", fmt.Errorf("%q is in the book %d times", line, n)
		}
	}
	return fmt.Sprintf("%d letters entered into the book once each", len(want)), nil
}

// awaitLines waits until all lines are in the book.
func (s *stage) awaitLines(ctx context.Context, want []string) error {
	told := map[string]bool{}
	for {
		lines, err := s.bookLines()
		if err != nil {
			return err
		}
		missing := 0
		for _, line := range want {
			switch {
			case !slices.Contains(lines, line):
				missing++
			case !told[line]:
				told[line] = true
				name, _, _ := strings.Cut(line, ":")
				s.story.note("entered", name+" into the book")
			}
		}
		if missing == 0 {
			return nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return s.ended(ctx, fmt.Errorf("%d letters are not in the book: %w", missing, err))
		}
	}
}

func (s *stage) bookLines() ([]string, error) {
	text, err := os.ReadFile(filepath.Join(s.letters, "book", "book.txt"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n"), err
}

func count(list []string, s string) int {
	n := 0
	for _, have := range list {
		if have == s {
			n++
		}
	}
	return n
}
