// Package when answers one question: given a schedule and an instant, when is
// the next one? It is pure. It reads no clock, keeps no state, and gives the
// same answer in every process; callers pass the instant to count from.
//
// # Intervals
//
// An interval is digits and a unit: 90s, 5m, 12h, 1d. Units may be combined
// from the largest to the smallest, each at most once: 1h30m, 7d12h. A day is
// 24 hours. The next instant is the given one plus the interval, so a schedule
// is anchored to the instant its owner stored and never to the start of a
// process.
//
// # Cron expressions
//
// Five fields separated by blanks:
//
//	minute        0-59
//	hour          0-23
//	day of month  1-31, L (the last day), L-3 (three days before the last)
//	month         1-12 or JAN-DEC
//	day of week   0-7 or SUN-SAT (0 and 7 are Sunday), 5L (the last Friday),
//	              5#2 or FRI#2 (the second Friday)
//
// Each field is a list (1,15) of values, ranges (1-5), and steps over them
// (*/15, 10-50/20; 5/15 starts at 5 and goes to the end of the field). Names
// are case-insensitive. @yearly, @annually, @monthly, @weekly, @daily,
// @midnight and @hourly stand for the usual expressions. Day of month and day
// of week combine as in crontab: when neither begins with *, a day that
// matches either counts; otherwise it must match both. A date that no year
// has, such as 31 February, is refused when the expression is read.
//
// # Clock changes
//
// Debian cron is the reference. An expression whose minute or hour field
// begins with * is a wildcard and follows the wall clock: it has nothing in
// the hour that is skipped in spring and runs in both passes of the hour that
// is repeated in autumn. Any other expression is fixed:
//
//   - a time that is skipped runs once, at the first minute after the gap;
//   - a time that is repeated runs in the first pass only;
//   - a change of three hours or more (Apia left out 30 December 2011) is a
//     correction of the calendar, and nothing is made up for.
//
// In Europe/Berlin, where 02:00 became 03:00 on 29 March 2026 and 03:00
// became 02:00 on 25 October 2026:
//
//	30 2 * * *    29 March: 03:00 (+02:00)    25 October: 02:30 (+02:00)
//	*/30 * * * *  29 March: 01:30, 03:00 ...  25 October: 02:00, 02:30, 02:00, 02:30, 03:00
//
// # Guarantees
//
// Next is strictly after the instant it was given, so a chain of calls
// strictly increases; it always ends; its results are in UTC, and those of
// cron expressions are whole minutes. It reports false only for the zero
// Schedule and past the year 9999. A Schedule never changes after it was made
// and may be shared between goroutines.
//
// The zone database of the machine is used when there is one, and the embedded
// one otherwise. When the machine's changes, instants that were stored for the
// future have to be computed again.
package when
