// Package billing keeps who pays for runs of graphs: accounts, what runs may
// still cost, and one receipt for every unit of usage. It is the one writer of
// receipts.
//
// # A run, in money
//
//	Reserve  before it starts: is there a cap or a balance that forbids it?
//	         Its estimate is set aside, so that runs that start together do
//	         not each see the whole budget.
//	Charge   while it runs: a receipt for each unit, once, and the balance goes
//	         down. It refuses nothing: what was used is owed, even if the
//	         balance becomes negative.
//	Settle   at its end, in the transaction of its outcome: all units once
//	         more, which changes nothing for those that have their receipt, and
//	         the reservation is released.
//
// A crash between the two leaves the reservation; it stands until the run is
// taken over and settled, or given up and settled.
//
// Amounts are whole 10^-7 USD. They were rounded up once, where the text of a
// cost was read; here they are only added. The days of caps
// are those of the account's zone; those of what was spent are UTC.
package billing
