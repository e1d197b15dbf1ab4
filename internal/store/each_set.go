package store

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// A set is one statement that many want with values of their own, as those do that
// read one thing for each row of a page. It asks for all of them at once, here in the
// words of PostgreSQL (see each_lite.go for SQLite):
//
//	select v.i, q.* from unnest($1::text[]) with ordinality as v (a1, i), lateral (... where id = v.a1 ...) q
//
// The values in which they differ are columns of v, the others stay what they are.
// The statement goes down the same index as for one, and its rows come in the same
// order for each.

var (
	parameter = regexp.MustCompile(`\$(\d+)\b`)
	// bounding are parameters that PostgreSQL does not take from a column.
	bounding = regexp.MustCompile(`\b(?:limit|offset)\s+\$(\d+)\b`)
)

// refusedSets are the texts that PostgreSQL does not take as sets, such as one that
// compares a column that is no text with a text. They go one by one.
type refusedSets struct{ m sync.Map }

func (r *refusedSets) add(sql string) { r.m.Store(sql, true) }

func (r *refusedSets) has(sql string) bool {
	_, there := r.m.Load(sql)
	return there
}

// setKey tells what can be one set: the statement, the values that bound it, and the
// types of the others. It is empty for what goes by itself.
func (c command) setKey() string {
	if strings.Contains(c.sql, holdSuffix) || c.sql == lockShared { // what is held is held for one
		return ""
	}
	var b strings.Builder
	b.WriteString(c.sql)
	for _, found := range bounding.FindAllStringSubmatch(c.sql, -1) {
		n, _ := strconv.Atoi(found[1])
		if n < 1 || n > len(c.args) {
			return ""
		}
		fmt.Fprintf(&b, "\x00%d=%v", n, c.args[n-1])
	}
	for _, a := range c.args {
		fmt.Fprintf(&b, "\x00%T", a)
	}
	return b.String()
}

// asSet makes one statement of several that have one key. Those that are the same
// stay as they are: the statement then has no column in front. ok is false if they
// have to go one by one.
func (db *DB) asSet(list []command) (one command, same, ok bool) {
	differ := differing(list)
	if len(differ) == 0 {
		return list[0], true, true
	}
	if db.sqliteFile != nil {
		one, ok = asLiteSet(list, differ)
		return one, false, ok
	}
	var args []any
	var arrays, names []string
	place := map[int]string{} // of each parameter, by its number
	for _, n := range differ {
		column, array := setColumn(list, n)
		if array == "" {
			return one, false, false
		}
		args = append(args, column)
		arrays = append(arrays, "$"+strconv.Itoa(len(args))+"::"+array)
		names = append(names, "a"+strconv.Itoa(n+1))
		place[n+1] = "v.a" + strconv.Itoa(n+1)
	}
	text, args := placed(list[0], place, args)
	sql := `select v.i, q.* from unnest(` + strings.Join(arrays, ", ") + `) with ordinality as v (` + strings.Join(names, ", ") + `, i), lateral (` + text + `) q`
	return command{sql, args}, false, true
}

// differing are the places of the values in which statements differ.
func differing(list []command) (out []int) {
	for n, a := range list[0].args {
		for _, c := range list[1:] {
			if !reflect.DeepEqual(a, c.args[n]) {
				out = append(out, n)
				break
			}
		}
	}
	return out
}

// placed puts columns in the place of parameters. The others follow those that there
// are.
func placed(c command, place map[int]string, args []any) (string, []any) {
	for n, a := range c.args {
		if place[n+1] == "" {
			args = append(args, a)
			place[n+1] = "$" + strconv.Itoa(len(args))
		}
	}
	return parameter.ReplaceAllStringFunc(c.sql, func(found string) string {
		n, _ := strconv.Atoi(found[1:])
		return place[n]
	}), args
}

// setColumn is the nth value of each as an array of PostgreSQL.
func setColumn(list []command, n int) (values any, array string) {
	t := reflect.TypeOf(list[0].args[n])
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return nil, ""
	}
	switch t.Kind() {
	case reflect.String:
		return gather(list, n, func(v reflect.Value) string { return cleaned(v.String()) }), "text[]"
	case reflect.Int, reflect.Int64, reflect.Int32:
		return gather(list, n, reflect.Value.Int), "bigint[]"
	default:
		return nil, ""
	}
}

func gather[T any](list []command, n int, read func(reflect.Value) T) []*T {
	out := make([]*T, len(list))
	for i, c := range list {
		v := reflect.ValueOf(c.args[n])
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				continue
			}
			v = v.Elem()
		}
		one := read(v)
		out[i] = &one
	}
	return out
}
