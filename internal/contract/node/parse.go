package node

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"
)

// parse reads YAML, of which JSON is a part, as a tree that knows its lines. A text
// of two documents, or with anchors, is refused: what is meant stands in one place.
func parse(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return nil, err
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document in the text")
	}
	return doc.Content[0], nil
}

// names of the types of YAML.
func typeName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "a boolean"
	case "!!str":
		return "a string"
	case "!!null":
		return "null"
	}
	return "a " + n.ShortTag()
}
