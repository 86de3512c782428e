// Package desired is the data model of a machine: what must be true of it, as
// plain data. It knows no machine and does no I/O; contracts and components
// build a State, converge makes it so.
package desired
