// Package fetch gets the pages of a source from the outside and turns them
// into typed rows.
//
// One call of Fetcher.Next is one page: ask the book for leave, call, judge
// the status, decode the body as a stream, decide where to go on. Nothing is
// kept between calls but the Position, which the caller stores together with
// the rows of the page; a fetch that is cut off goes on there.
//
//	Position -> request -> answer -> rows in a spool -> Page{Next Position, Last}
//
// # Memory
//
// A page is not handed out before its answer was read to the end, because
// whether there is more, or whether it is an error at all, may stand behind the
// rows. Until then its rows wait in a compact form: in memory up to a few
// megabytes, and past that in a file. What a page costs does therefore not
// depend on its size. A row has at most 4 MiB.
//
// # Rows that do not fit
//
// A value that does not fit its type, a required value that is missing, a name
// that is there twice, and text that a database cannot hold (NUL characters,
// broken UTF-8) reject their row with the reason, and nothing but that row. An
// answer that is not what the definition says, or that ends too early, is an
// Error and gives no page at all.
//
// # Loops
//
// A cursor, a link or the content of a page that was seen before ends the fetch
// with an Error of code loop. The position remembers a bounded number of them;
// longer circles are ended by the limit of pages.
//
// # Secrets
//
// Credentials are added by the Book to the request, and only there: they are in
// no Position, no Page and no message. Links lead to the host of the definition
// or nowhere.
package fetch
