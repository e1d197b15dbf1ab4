// Package grant keeps who allowed which graphs to run, and at whose expense.
//
// A scheduled run happens while nobody is signed in. What stands in for the
// person is a grant: a stored right that is scoped to graphs, may expire, can
// be revoked and names the billing account that pays. It holds no credential.
//
// This is the only package that knows what a scope looks like. Everybody else
// passes the id of a grant and the id of a graph and asks: a person's side
// through Service, a worker's side through Gate, which can only ask.
//
// A refusal is a *pawl.Error whose Reason is one of the grant codes of package
// contract. Any other error says nothing about the grant: the database could
// not be asked, and the same question may be answered later.
package grant
