package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

type kind int

const (
	null kind = iota
	boolean
	number
	text
	array
	object
)

func (k kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// node is a JSON value with the offset of its first byte.
type node struct {
	kind    kind
	offset  int
	text    string // of a string: its value; of a number: as written
	truth   bool
	items   []*node
	members []member
}

type member struct {
	name   string
	offset int
	value  *node
}

// syntaxError is text that is not JSON.
type syntaxError struct {
	offset int
	reason string
}

func (e *syntaxError) Error() string { return e.reason }

// parse reads one JSON value. The grammar is encoding/json's; this adds positions,
// keeps duplicate names, and refuses text that would be replaced silently.
func parse(data []byte) (*node, *syntaxError) {
	if at := invalidUTF8(data); at >= 0 {
		return nil, &syntaxError{at, "the text is not UTF-8"}
	}
	if err := wellFormed(data); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	p := treeParser{data: data, dec: d}
	root := p.value()
	return root, p.err
}

// truncated is how encoding/json says that there should be more.
const truncated = "unexpected end of JSON input"

func wellFormed(data []byte) *syntaxError {
	var raw json.RawMessage
	err := json.Unmarshal(data, &raw)
	if err == nil {
		return nil
	}
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return &syntaxError{0, err.Error()}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return &syntaxError{0, "the document is empty"}
	}
	if err.Error() == truncated {
		return &syntaxError{len(data), fmt.Sprintf("the document ends after %d bytes, in the middle of a value: it is truncated", len(data))}
	}
	return &syntaxError{int(syntax.Offset) - 1, "not JSON: " + err.Error()}
}

func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

type treeParser struct {
	data []byte
	dec  *json.Decoder
	err  *syntaxError
}

// next returns what comes next and the offset of its first byte.
func (p *treeParser) next() (json.Token, int) {
	start := int(p.dec.InputOffset())
	for start < len(p.data) && strings.IndexByte(" \t\r\n,:", p.data[start]) >= 0 {
		start++
	}
	item, err := p.dec.Token()
	if err != nil && p.err == nil {
		p.err = &syntaxError{start, "not JSON: " + err.Error()}
	}
	if s, ok := item.(string); ok {
		p.checkReplaced(s, start)
	}
	return item, start
}

// checkReplaced refuses half a surrogate pair, which encoding/json reads as U+FFFD.
func (p *treeParser) checkReplaced(s string, start int) {
	raw := p.data[start:p.dec.InputOffset()]
	written := bytes.Count(raw, []byte("\uFFFD")) + bytes.Count(bytes.ToLower(raw), []byte(`\ufffd`))
	if p.err == nil && strings.Count(s, "\uFFFD") > written {
		p.err = &syntaxError{start, "half of a surrogate pair in a string"}
	}
}

func (p *treeParser) value() *node {
	item, start := p.next()
	n := &node{offset: start}
	switch t := item.(type) {
	case json.Delim:
		if t == '{' {
			n.kind = object
			p.object(n)
		} else {
			n.kind = array
			p.array(n)
		}
	case string:
		n.kind, n.text = text, t
	case json.Number:
		n.kind, n.text = number, t.String()
	case bool:
		n.kind, n.truth = boolean, t
	}
	return n
}

func (p *treeParser) object(n *node) {
	for p.err == nil && p.dec.More() {
		name, start := p.next()
		n.members = append(n.members, member{fmt.Sprint(name), start, p.value()})
	}
	p.next()
}

func (p *treeParser) array(n *node) {
	for p.err == nil && p.dec.More() {
		n.items = append(n.items, p.value())
	}
	p.next()
}

// lineColumn counts from 1; columns are characters.
func lineColumn(data []byte, offset int) (line, column int) {
	before := data[:min(offset, len(data))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}
