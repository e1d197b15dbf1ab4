// Package table writes the rows of a source into a table of the user's naming.
//
// A Plan is made from a definition. Ensure creates the table, or adds the
// columns that it lacks, or says why it does not fit; it never drops or changes
// a column. WritePage writes the rows of one page, in the caller's transaction.
//
// Beside the columns of the definition a table has
//
//	source_name  the source of the row; several sources may share a table
//	created_at   when the row was first written
//	_run         the run that last wrote it
//	updated_at   when it was last written (upsert and replace)
//	_raw         the row as it came, if the definition asks for it
//	_row         a digest of the row's values, if the definition has no key
//
// A row is told from the others of its source by its identity: the key of the
// definition, or _row. A unique index over source_name and the identity makes
// every write repeatable: a page that is written twice is there once, and rows
// of the outside that are equal in all values are one row.
//
//	append   a row that is there stays as it is
//	upsert   a row that is there and differs is brought up to date
//	replace  pages gather in a staging table; Finish makes the table hold
//	         exactly them, in one transaction, so that a reader sees what was
//	         there before or what is there after
//
// On PostgreSQL, a large chunk of rows that follows one of which all were new is
// copied: COPY takes all of them, or, behind a savepoint, none, and then they are
// inserted like any others.
//
// No statement touches a row of another source. A crash between pages of a
// replace leaves the table as it was; the next Begin clears the staging table.
package table
