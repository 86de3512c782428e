// Package decode reads and validates the AKS contract: bytes in, a configuration that can be acted on out,
// or every reason why not.
//
// protojson stops at the first error and knows neither lines nor the spelling of the document, so this
// package reads the JSON into a tree with positions and fills the message by its descriptor. It accepts
// what protojson accepts, and a fuzz test holds the two together. Clients link this package through
// pkg/nodeconfigutils; it imports little.
package decode
