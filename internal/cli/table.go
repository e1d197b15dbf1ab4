package cli

import (
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// column is one column of a table.
type column struct {
	title string
	wide  bool // shown with -o wide only
	flex  bool // may be cut to fit the terminal
	state bool // a word that says how things are; coloured by it
}

const (
	gap       = 3 // blanks between columns
	flexWidth = 6 // a column is not cut to less
)

// sheet writes rows under the same columns, at once or as they come.
type sheet struct {
	columns []column
	widths  []int // what earlier rows needed
	width   int   // of the terminal; 0 is no limit
	colour  bool
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
	limits := s.fit()
	t := table.NewWriter()
	t.SetStyle(plainStyle())
	t.SuppressTrailingSpaces()
	configs := make([]table.ColumnConfig, len(s.columns))
	header := make(table.Row, len(s.columns))
	for i, c := range s.columns {
		configs[i] = table.ColumnConfig{Number: i + 1, WidthMin: limits[i]}
		header[i] = s.tint(strings.ToUpper(c.title), text.Bold)
	}
	t.SetColumnConfigs(configs)
	if titles {
		t.AppendHeader(header)
	}
	for _, row := range rows {
		cells := make(table.Row, len(row))
		for i, cell := range row {
			cell = text.Snip(cell, limits[i], "…")
			if s.columns[i].state {
				cell = s.tint(cell, stateColours(cell)...)
			}
			cells[i] = cell
		}
		t.AppendRow(cells)
	}
	_, err := io.WriteString(w, t.Render()+"\n")
	return err
}

// fit returns the width of each column, cutting the widest flexible ones until
// a row fits the terminal.
func (s *sheet) fit() []int {
	limits := append([]int(nil), s.widths...)
	if s.width == 0 {
		return limits
	}
	over := gap*(len(limits)-1) - s.width
	for _, n := range limits {
		over += n
	}
	for ; over > 0; over-- {
		widest := -1
		for i, c := range s.columns {
			if c.flex && limits[i] > flexWidth && (widest < 0 || limits[i] > limits[widest]) {
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
	switch word {
	case "failed", "revoked", "expired":
		return []text.Color{text.FgRed}
	case "running":
		return []text.Color{text.FgCyan}
	case "pending":
		return []text.Color{text.FgYellow}
	case "succeeded", "active":
		return []text.Color{text.FgGreen}
	case "cancelled":
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

// oneLine keeps a cell from breaking its row, and control codes of foreign
// text from reaching the terminal.
func oneLine(cell string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0:
			return -1
		}
		return r
	}, cell)
}
