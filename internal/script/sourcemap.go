package script

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// sourceMap finds the place in the source of a place in the JavaScript that
// esbuild made of it. All places count from 0 here.
type sourceMap struct {
	lines   [][]segment // by line of the JavaScript, each sorted by column
	sources []string
}

// segment says that the JavaScript from column on, up to the next segment,
// comes from line and from of a source; a negative source means from nowhere.
type segment struct {
	column, source, line, from int
}

// parseSourceMap reads a source map of version 3.
func parseSourceMap(text []byte) (*sourceMap, error) {
	var file struct {
		Version  int      `json:"version"`
		Sources  []string `json:"sources"`
		Mappings string   `json:"mappings"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("read a source map: %w", err)
	}
	if file.Version != 3 {
		return nil, fmt.Errorf("read a source map: version %d is not 3", file.Version)
	}
	m := &sourceMap{sources: file.Sources}
	var at segment // source, line and from are counted from the last segment
	for line := range strings.SplitSeq(file.Mappings, ";") {
		segments, err := parseLine(line, &at)
		if err != nil {
			return nil, err
		}
		m.lines = append(m.lines, segments)
	}
	return m, nil
}

func parseLine(line string, at *segment) ([]segment, error) {
	var segments []segment
	at.column = 0
	for field := range strings.SplitSeq(line, ",") {
		if field == "" {
			continue
		}
		numbers, err := parseVLQ(field)
		if err != nil {
			return nil, err
		}
		at.column += numbers[0]
		if len(numbers) < 4 {
			segments = append(segments, segment{column: at.column, source: -1})
			continue
		}
		at.source += numbers[1]
		at.line += numbers[2]
		at.from += numbers[3]
		segments = append(segments, *at)
	}
	slices.SortStableFunc(segments, func(a, b segment) int { return a.column - b.column })
	return segments, nil
}

// parseVLQ reads the numbers of one segment: base 64, five bits a digit, the
// least first, a continuation bit, and the sign in the lowest bit.
func parseVLQ(field string) ([]int, error) {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	var numbers []int
	value, shift := 0, 0
	for i := range len(field) {
		digit := strings.IndexByte(digits, field[i])
		if digit < 0 || shift > 30 {
			return nil, fmt.Errorf("read a source map: %q is not a list of numbers", field)
		}
		value |= digit & 31 << shift
		shift += 5
		if digit&32 != 0 {
			continue
		}
		number := value >> 1
		if value&1 != 0 {
			number = -number
		}
		numbers = append(numbers, number)
		value, shift = 0, 0
	}
	if shift != 0 || len(numbers) == 0 {
		return nil, fmt.Errorf("read a source map: %q ends in the middle", field)
	}
	return numbers, nil
}

// find returns the place that a place in the JavaScript comes from; one
// without a line when it is not known.
func (m *sourceMap) find(line, column int) Place {
	if line < 0 || line >= len(m.lines) {
		return Place{}
	}
	segments := m.lines[line]
	i, exact := slices.BinarySearchFunc(segments, column, func(s segment, c int) int { return s.column - c })
	if !exact {
		i--
	}
	if i < 0 {
		return Place{}
	}
	s := segments[i]
	if s.source < 0 || s.source >= len(m.sources) || s.line < 0 || s.from < 0 {
		return Place{}
	}
	return Place{File: m.sources[s.source], Line: s.line + 1, Column: s.from + 1}
}
