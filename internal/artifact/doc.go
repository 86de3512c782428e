// Package artifact brings files from elsewhere onto the machine: one streaming
// pass from the network through the digest and the unpacker to durable files
// under temporary names. It also says of which version a program is.
package artifact
