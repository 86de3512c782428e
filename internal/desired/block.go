package desired

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/lazyregexp"
)

// Block is a part of a file that others own, too: lines between two marks, or
// assignments KEY=value, one a line. Only that part is compared, changed and taken
// away. A file that is not there is made with Mode.
type Block struct {
	Base
	Path string `json:"path"`
	// Name tells the blocks of one file apart.
	Name string `json:"name"`
	// Lines stand between the marks. They end with a line feed.
	Lines string `json:"lines,omitempty"`
	// First puts the lines before all others of the file, for readers to whom the
	// first word counts.
	First bool `json:"first,omitempty"`
	// Keys are assignments instead of Lines; what is said of a key elsewhere in the
	// file is replaced, and comes back.
	Keys map[string]string `json:"keys,omitempty"`
	Mode Mode              `json:"mode"`
}

// BlockID names a block.
func BlockID(p, name string) ID { return ID("block:" + p + "#" + name) }

// ID implements Resource.
func (b *Block) ID() ID { return BlockID(b.Path, b.Name) }

// Kind implements Resource.
func (b *Block) Kind() string { return "block" }

// FilePaths implements Resource.
func (b *Block) FilePaths() []string { return []string{b.Path} }

var (
	blockName = lazyregexp.New(`^[a-z0-9][a-z0-9-]*$`)
	blockKey  = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Validate implements Resource.
func (b *Block) Validate() error {
	if !blockName().MatchString(b.Name) {
		return fmt.Errorf("%q is not a name for a block", b.Name)
	}
	if (b.Lines == "") == (len(b.Keys) == 0) {
		return errors.New("a block has either lines or keys")
	}
	if b.First && b.Lines == "" {
		return errors.New("keys stand where they stand: only lines can be first")
	}
	if b.Lines != "" && !strings.HasSuffix(b.Lines, "\n") {
		return errors.New("the lines of a block end with a line feed")
	}
	for _, key := range slices.Sorted(maps.Keys(b.Keys)) {
		if !blockKey().MatchString(key) || strings.ContainsAny(b.Keys[key], "\n\x00") {
			return fmt.Errorf("%q is not an assignment of one line", key)
		}
	}
	return cleanAbs(b.Path)
}
