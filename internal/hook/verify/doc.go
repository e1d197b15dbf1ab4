// Package verify decides whether a delivery of a webhook comes from whom it says.
// It is pure: what it is given is the headers, the body as it came, the secrets and
// the time.
//
// Every scheme is a code over the body, and for most over the time at which it was
// sent as well. A code is compared in constant time with that of every secret, so
// that neither how much of a forged one is right nor which secret made it can be
// measured. Where a scheme signs a time, a delivery is good for the tolerance around
// it, in both directions: a clock may be ahead as well as behind.
package verify
