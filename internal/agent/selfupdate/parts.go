package selfupdate

import (
	"crypto/sha256"
	"encoding/hex"
	"path"

	"github.com/berth-dev/berth/internal/desired"
)

// Parts are what a document says of the agent itself.
type Parts struct {
	// Field is where the document says it.
	Field string
	// Unit is the definition of the agent's unit, "" where the document has none;
	// DropIns are by name.
	Unit    string
	DropIns map[string]string
	Program *Program
}

// Program is what the agent's unit is to run.
type Program struct {
	Path string
	// Image and Member say out of which image it comes; Ahead is as in
	// desired.Artifact. Without an image Content is the program.
	Image, Member string
	Ahead         map[string]desired.Content
	Content       []byte
}

// copiesDir has a directory for each program that is kept.
const copiesDir = ".berth-agent"

// copyPath is where a program is kept, beside the path by which it is called: that file
// system lets programs run.
func copyPath(program, key string) string {
	return path.Join(path.Dir(program), copiesDir, key, path.Base(program))
}

// Called is the path by which the program at a path is called: a copy goes with its
// version, and the link to it stays.
func Called(program string) string {
	if dir := path.Dir(path.Dir(program)); path.Base(dir) == copiesDir {
		return path.Join(path.Dir(dir), path.Base(program))
	}
	return program
}

func (p *Program) copyPath() string {
	content := p.Content
	if p.Image != "" {
		content = []byte(p.Image + "\n" + p.Member)
	}
	sum := sha256.Sum256(content)
	return copyPath(p.Path, hex.EncodeToString(sum[:8]))
}

// resource is the program at its copy's path.
func (p *Program) resource() desired.Resource {
	at := p.copyPath()
	if p.Image == "" {
		return &desired.File{Path: at, Content: desired.Bytes(p.Content), Mode: 0o755, Life: desired.Managed}
	}
	return &desired.Artifact{Name: p.Image, Image: p.Image, Ahead: p.Ahead,
		Files: []desired.ArtifactFile{{Member: p.Member, Path: at, Mode: 0o755}}}
}
