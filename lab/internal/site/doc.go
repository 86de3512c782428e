// Package site is what a bare node gets its programs from: a server of the
// lab's, or a signed bundle on its own disk; and what the node says of it.
package site
