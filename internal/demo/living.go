package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// How often something happens when the scenes are over.
const (
	letterEvery = 5 * time.Second
	wishEvery   = 10 * time.Second
	changeEvery = 5 * time.Second // of a price
	askedEvery  = time.Second     // whether somebody must approve something

	mostLarge   = 3  // large wishes that wait for a person
	mostLetters = 50 // that lie in the inbox
)

// living is a world that goes on by itself: letters arrive, people have wishes,
// prices change. The schedule and the source see to themselves.
type living struct {
	*stage
	letters, wishes, largeWishes int
	told                         map[string]bool // approvals, by id
}

// live goes on until the demo ends.
func (s *stage) live(ctx context.Context) {
	l := &living{stage: s, told: map[string]bool{}}
	s.market.failEvery(8)
	letter, wish, change, asked := time.NewTicker(letterEvery), time.NewTicker(wishEvery), time.NewTicker(changeEvery), time.NewTicker(askedEvery)
	defer letter.Stop()
	defer wish.Stop()
	defer change.Stop()
	defer asked.Stop()
	l.wishLarge() // something to approve at once
	for {
		select {
		case <-ctx.Done():
			return
		case <-letter.C:
			l.sendLetter()
		case <-wish.C:
			l.wish()
		case now := <-change.C:
			p := s.market.change(now)
			s.story.note("changed", fmt.Sprintf("the price of %s is %.2f", p.Symbol, p.Quote.Close))
		case <-asked.C:
			l.tellQuestions(ctx)
		}
	}
}

// sendLetter puts a letter into the inbox, tells whether the one before is in
// the book, and takes an old one away that is.
func (l *living) sendLetter() {
	lines, err := l.bookLines()
	if err == nil && slices.Contains(lines, l.letter(l.letters).line()) {
		l.story.note("recorded", l.letter(l.letters).name+" in the book")
	}
	if old := l.letter(l.letters - mostLetters); err == nil && slices.Contains(lines, old.line()) {
		_ = os.Remove(l.inbox(old)) // it is in nobody's way
	}
	l.letters++
	next := l.letter(l.letters)
	if err := os.WriteFile(l.inbox(next), []byte(next.text+"\n"), 0o600); err != nil {
		l.story.note("failed", "cannot write a letter to the inbox: "+err.Error())
		return
	}
	l.story.note("arrived", next.name+" in the inbox")
}

// letter is a file of the inbox.
type letter struct{ name, text string }

// line is what the workflow enters into the book.
func (x letter) line() string { return x.name + ": " + x.text }

func (l *living) letter(n int) letter {
	return letter{fmt.Sprintf("letter-%s-%d.txt", l.desk.book.start, n), fmt.Sprintf("Dear Pawl, this is letter %d.", n)}
}

func (l *living) inbox(x letter) string { return filepath.Join(l.rooms.connections, "inbox", x.name) }

// wish has a small wish, whose answer is lost now and then, or a large one
// unless many of them wait.
func (l *living) wish() {
	l.wishes++
	if l.wishes%3 == 0 && l.desk.book.open(large) < mostLarge {
		l.wishLarge()
		return
	}
	things := []string{"a lamp", "a chair", "a clock", "a kettle", "a map"}
	l.desk.book.make(small, things[l.wishes%len(things)], l.wishes%4 == 1)
}

func (l *living) wishLarge() {
	things := []string{"a sailing boat", "a greenhouse", "a grand piano"}
	l.desk.book.make(large, things[l.largeWishes%len(things)], false)
	l.largeWishes++
}

// tellQuestions tells what waits for a person, once.
func (l *living) tellQuestions(ctx context.Context) {
	questions, err := l.questions(ctx)
	if err != nil {
		return // the next look tells
	}
	for _, q := range questions {
		if !l.told[q.ID] {
			l.told[q.ID] = true
			l.story.note("needs approval", fmt.Sprintf("%s: in the browser, or pawl approve %s", q.Title, q.RunID))
		}
	}
}
