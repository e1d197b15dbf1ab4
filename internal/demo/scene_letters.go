package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/examples"
)

// letters is a workflow, the one of examples/letters: what lies in the inbox is
// entered into the book, every letter once, although the inbox is looked into
// again and again.
func letters() scene {
	return scene{name: "letters", promise: "a workflow handles every input once, however often it polls", play: playLetters}
}

func playLetters(ctx context.Context, s *stage) (string, error) {
	var want []string
	for n := range 3 {
		name := fmt.Sprintf("first-%s-%d.txt", s.desk.book.start, n+1)
		text := fmt.Sprintf("Dear Pawl, this is letter %d of the first three.", n+1)
		if err := os.WriteFile(filepath.Join(s.rooms.connections, "inbox", name), []byte(text+"\n"), 0o600); err != nil {
			return "", err
		}
		want = append(want, name+": "+text)
	}
	if err := s.deploy(ctx, examples.Letters, "letters/letters.workflow.ts", "letters"); err != nil {
		return "", err
	}
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
	return fmt.Sprintf("%d letters recorded, each once", len(want)), nil
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
				s.story.note("recorded", name+" in the book")
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
	text, err := os.ReadFile(filepath.Join(s.rooms.connections, "book", "book.txt"))
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
