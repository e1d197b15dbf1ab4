package connector

// Addresser is a connection that can tell where a call would go. Whoever is
// asked to approve a call sees it: a path such as /orders says nothing of the
// host.
type Addresser interface {
	// Address is where a call goes, in words that people recognise, such as
	// POST https://shop.example.com/orders. It calls nobody. It is empty for
	// a call that would be refused.
	Address(c Call) string
}
