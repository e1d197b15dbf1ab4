// Package door is the text of what applications call inside their own
// transactions on PostgreSQL: functions and a view in the schema pawl, for the
// role pawl_app.
package door

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// Schema and Role are what applications know.
const (
	Schema = "pawl"
	Role   = "pawl_app"
)

// Most is how many jobs one call may add.
const Most = 10_000

//go:embed door.sql
var text string

// SQL is the statements for an installation whose tables are in a schema, which
// is quoted where it must be, and their mark: what is in place has the same one.
// epoch is where the numbers of jobs begin, ahead how far in the future a job can
// be.
func SQL(home string, epoch int64, ahead time.Duration) (statements []string, mark string) {
	sql := expandUUIDs(strings.NewReplacer(
		"{{owner}}", owner,
		"{{watch}}", watch,
		"{{hidden}}", hidden(),
		"{{most}}", strconv.Itoa(Most),
		"{{ahead}}", strconv.Itoa(int(ahead.Hours())),
	).Replace(text))
	sql = strings.NewReplacer("{{home}}", home, "{{epoch}}", strconv.FormatInt(epoch, 10)).Replace(sql)
	sum := sha256.Sum256([]byte(sql))
	return split(sql), markStart + home + markEnd + hex.EncodeToString(sum[:8])
}

const (
	markStart = "the door for applications to the Pawl in schema "
	markEnd   = ", "
)

// HomeOf is the schema of the installation that a mark is of; empty if it is none.
func HomeOf(mark string) string {
	rest, ours := strings.CutPrefix(mark, markStart)
	if i := strings.LastIndex(rest, markEnd); ours && i > 0 {
		return rest[:i]
	}
	return ""
}

// split cuts the text at the semicolons outside of function bodies, and drops the
// comments there.
func split(sql string) (out []string) {
	var statement strings.Builder
	for i, part := range strings.Split(sql, "$$") {
		if i > 0 {
			statement.WriteString("$$")
		}
		if i%2 == 1 { // a body
			statement.WriteString(part)
			continue
		}
		for j, piece := range strings.Split(comment.ReplaceAllString(part, ""), ";") {
			if j > 0 {
				out = append(out, strings.TrimSpace(statement.String()))
				statement.Reset()
			}
			statement.WriteString(piece)
		}
	}
	return out
}

var comment = regexp.MustCompile(`(?m)^--.*$`)

// Grants are what give the role what it may do, which is this and nothing else.
func Grants() []string {
	return []string{
		`grant usage on schema pawl to pawl_app`,
		`grant execute on function pawl.add_job(text, jsonb, timestamptz, text, text, text, int, int), pawl.add_jobs(jsonb), pawl.publish(text, text, text, jsonb, jsonb), pawl.cancel_job(uuid) to pawl_app`,
		`grant select on pawl.job_state to pawl_app`,
	}
}

// CreateRole makes the role, whoever else is doing the same in another database
// of the server.
const CreateRole = `do $$ begin create role pawl_app nologin; exception when duplicate_object or unique_violation then null; end $$`

// owner is the user in whose name a session acts.
const owner = `coalesce((select u.id from {{home}}.users u where u.name = session_user::text), (select u.id from {{home}}.users u where u.name = 'admin'))`

// watch is until when a node looks for new jobs by itself; zero for transactions that
// see the past.
const watch = `case when current_setting('transaction_isolation') = 'read committed' then coalesce((select w.until_at from {{home}}.door_watch w where w.id = 1), 0) else 0 end`

// expandUUIDs writes the id of a job for every {{uuid:NUMBER}}: see store.JobUUID.
// It has functions of PostgreSQL only, so that an index can be made of it.
func expandUUIDs(sql string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(sql, "{{uuid:")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		number, after, _ := strings.Cut(rest, "}}")
		fmt.Fprintf(&b, `(lpad(to_hex((%[1]s >> 22) + {{epoch}}), 12, '0') || '8' || lpad(to_hex((%[1]s >> 10) & 4095), 3, '0') || to_hex(32768 | ((%[1]s & 1023) << 4)) || '00007061776c')::uuid`, number)
		sql = after
	}
}

// Printable is the rule of all doors for the characters of names.
func Printable(r rune) bool { return unicode.IsPrint(r) }

// hidden is made once: it goes through all characters, which takes a while.
var hidden = sync.OnceValue(hiddenClass) //nolint:gochecknoglobals // made once

// Prepare makes what takes a while, so that no transaction waits for it.
func Prepare() { hidden() }

// hiddenClass is the class of a regular expression for every character that is
// not printable.
func hiddenClass() string {
	var b strings.Builder
	b.WriteByte('[')
	code := func(r rune) string {
		if r > 0xffff {
			return fmt.Sprintf(`\U%08x`, r)
		}
		return fmt.Sprintf(`\u%04x`, r)
	}
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if Printable(r) || !utf8.ValidRune(r) {
			continue
		}
		first := r
		for r < unicode.MaxRune && !Printable(r+1) && utf8.ValidRune(r+1) {
			r++
		}
		b.WriteString(code(first))
		if r > first {
			b.WriteString("-" + code(r))
		}
	}
	b.WriteByte(']')
	return b.String()
}
