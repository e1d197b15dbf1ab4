package cli

import (
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/pawlrun/pawl/internal/visible"
)

// column is one column of a table.
type column struct {
	title     string
	wide      bool // shown with -o wide only
	everybody bool // shown where the things of everybody are asked for, too
	flex      bool // may be cut to fit the terminal
	least     int  // a flexible column is not cut to less; 0 is flexWidth
	spare     bool // left out where the terminal is too narrow for all
	state     bool // a word that says how things are; coloured by it
}

const (
	gap       = 3 // blanks between columns
	flexWidth = 6 // a column is usually not cut to less
)

// sheet writes rows under the same columns, at once or as they come.
type sheet struct {
	columns []column
	widths  []int // what earlier rows needed
	width   int   // of the terminal; 0 is no limit
	colour  bool
	dropped []bool // columns that are left out; chosen for the first rows and kept
}

func newSheet(p *Process, columns []column) *sheet {
	s := &sheet{columns: columns, widths: make([]int, len(columns)), colour: p.paint(p.StdoutTerminal)}
	if p.StdoutTerminal {
		s.width = p.Width
	}
	for i, c := range columns {
		s.widths[i] = text.StringWidthWithoutEscSequences(c.title)
	}
	return s
}

// write renders rows, with the titles above them if wanted.
func (s *sheet) write(w io.Writer, rows [][]string, titles bool) error {
	for _, row := range rows {
		for i, cell := range row {
			row[i] = oneLine(cell)
			s.widths[i] = max(s.widths[i], text.StringWidthWithoutEscSequences(row[i]))
		}
	}
	s.drop()
	limits := s.fit()
	t := table.NewWriter()
	t.SetStyle(plainStyle())
	t.SuppressTrailingSpaces()
	var configs []table.ColumnConfig
	var header table.Row
	for i, c := range s.columns {
		if !s.dropped[i] {
			configs = append(configs, table.ColumnConfig{Number: len(configs) + 1, WidthMin: limits[i]})
			header = append(header, s.tint(strings.ToUpper(c.title), text.Bold))
		}
	}
	t.SetColumnConfigs(configs)
	if titles {
		t.AppendHeader(header)
	}
	for _, row := range rows {
		var cells table.Row
		for i, cell := range row {
			if !s.dropped[i] {
				cells = append(cells, s.cell(i, cell, limits[i]))
			}
		}
		t.AppendRow(cells)
	}
	_, err := io.WriteString(w, t.Render()+"\n")
	return err
}

// cell is a cell cut to its column, and coloured if it is a state.
func (s *sheet) cell(column int, whole string, limit int) string {
	cut := text.Snip(whole, limit, "…")
	if s.columns[column].state {
		return s.tint(cut, stateColours(whole)...)
	}
	return cut
}

// drop chooses the columns to leave out, the last ones first, until the
// others fit the terminal. It chooses once: rows that come later must stand
// below the same titles.
func (s *sheet) drop() {
	if s.dropped != nil {
		return
	}
	s.dropped = make([]bool, len(s.columns))
	for i := len(s.columns) - 1; i >= 0 && s.width > 0 && s.needed() > s.width; i-- {
		s.dropped[i] = s.columns[i].spare
	}
}

// needed is the least width of a row.
func (s *sheet) needed() int {
	width := -gap
	for i, c := range s.columns {
		switch {
		case s.dropped[i]:
		case c.flex:
			width += gap + min(s.widths[i], c.shortest())
		default:
			width += gap + s.widths[i]
		}
	}
	return width
}

// shortest is what a flexible column is not cut below.
func (c column) shortest() int { return max(c.least, flexWidth) }

// fit returns the width of each column, cutting the widest flexible ones until
// a row fits the terminal.
func (s *sheet) fit() []int {
	limits := append([]int(nil), s.widths...)
	if s.width == 0 {
		return limits
	}
	over := -gap - s.width
	for i, n := range limits {
		if !s.dropped[i] {
			over += gap + n
		}
	}
	for ; over > 0; over-- {
		widest := -1
		for i, c := range s.columns {
			if c.flex && !s.dropped[i] && limits[i] > c.shortest() && (widest < 0 || limits[i] > limits[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		limits[widest]--
	}
	return limits
}

func (s *sheet) tint(cell string, colours ...text.Color) string {
	if !s.colour || len(colours) == 0 {
		return cell
	}
	return text.Colors(colours).EscapeSeq() + cell + text.Colors{text.Reset}.EscapeSeq()
}

// stateColours are the colours of the words for how a thing is.
func stateColours(word string) []text.Color {
	group, _, _ := strings.Cut(word, ":") // failed:logic is a failure
	if strings.HasPrefix(group, "paused until ") {
		group = "paused"
	}
	switch group {
	case "failed", "crashed", "revoked", "expired", "error", "Needs attention":
		return []text.Color{text.FgRed}
	case "running", "Running", "in_flight", "reserved":
		return []text.Color{text.FgCyan}
	case "pending", "paused", "planned", "needs_reconcile", "indeterminate":
		return []text.Color{text.FgYellow}
	case "succeeded", "success", "active", "enabled", "committed", "applied", "done", "consumed":
		return []text.Color{text.FgGreen}
	case "cancelled", "skipped", "orphaned", "disabled", "Stopped":
		return []text.Color{text.FgHiBlack}
	}
	return nil
}

// plainStyle has no borders: it reads well and is easy to cut apart.
func plainStyle() table.Style {
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft = ""
	style.Box.PaddingRight = strings.Repeat(" ", gap)
	style.Format.Header = text.FormatDefault
	return style
}

// oneLine keeps a cell from breaking its row, and what foreign text hides from
// being obeyed by a terminal or missed by whoever reads it.
func oneLine(cell string) string { return visible.Line(cell) }
