// Package sqltool is the connector of a database, PostgreSQL or SQLite. Scripts
// read with query and change with exec; both take one statement of SQL with
// its parameters.
//
// # What a script can do
//
// SQL is a language without a fence: a script can do whatever the role of the
// connection, or the file, allows. The connector keeps these promises on top:
//
//   - query does not write. It runs in a READ ONLY transaction on PostgreSQL
//     and on a query_only connection on SQLite, which is rolled back.
//   - A call is one statement. PostgreSQL refuses more by its protocol; for
//     SQLite, whose driver would run them all, the text is read with SQLite's
//     own rules of lexing.
//   - A statement begins with a word from a list. So it cannot end the
//     transaction that it runs in, change the settings of the session, or
//     reach for other files by ATTACH, VACUUM INTO, COPY or PRAGMA.
//   - No statement meets what another left behind in a session: changes have
//     a connection of their own, and reads get one that is new or made as new.
//   - PostgreSQL is dialled through the guarded client, by TCP only.
//
// # Exactly once
//
// exec keeps a row in the table pawl_calls of the same database, in the same
// transaction as the statement:
//
//	key     the idempotency key of the call
//	at      when it was recorded
//	result  what the call answered, as JSON; null if the call was withdrawn
//
// The steps of a call, all in one transaction:
//
//  1. Insert the key. Whoever else comes with this key waits here for the end
//     of the transaction. If the key is already there, the answer is what was
//     recorded, and nothing is applied.
//  2. Run the statement.
//  3. Record the result with the key.
//  4. Commit.
//
// Whatever goes wrong before step 4 did not happen: a transaction whose commit
// was never sent cannot commit. An error of the server in answer to the commit
// says so too. Any other end of step 4 is unknown, and never anything else.
//
// # Reconcile
//
// Reconcile inserts the key as well, without a result. While a transaction
// that holds the key is still open somewhere, that waits; if it committed, the
// key is there, with the result: applied. Else the key is now recorded as
// withdrawn: the call did not happen, and should it still be on its way it will
// be refused. If pawl_calls is gone, so is all evidence, and the answer is an
// error, which means Later.
//
// Nobody removes rows from pawl_calls but the operator, because a person may
// ask about a call after any time. Rows older than the oldest open question
// can be deleted.
//
// With track: false there is no table and no Reconcile; a call whose commit
// was not answered is then for a person to look into.
package sqltool
