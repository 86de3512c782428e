package desired

import "errors"

// Swap is a file that holds a swap area, and nothing else. What uses it is a unit.
type Swap struct {
	Base
	Path string `json:"path"`
	// Bytes are its size.
	Bytes int64 `json:"bytes"`
}

// MinSwap is the least size of a swap file, in bytes: mkswap(8) makes none of fewer than
// ten pages, and a page is up to 64 KiB.
const MinSwap = 10 * 64 << 10

// SwapID names a swap file by its path.
func SwapID(path string) ID { return ID("swap:" + path) }

// ID implements Resource.
func (s *Swap) ID() ID { return SwapID(s.Path) }

// Kind implements Resource.
func (s *Swap) Kind() string { return "swap" }

// FilePaths implements Resource.
func (s *Swap) FilePaths() []string { return []string{s.Path} }

// Validate implements Resource.
func (s *Swap) Validate() error {
	if s.Bytes < MinSwap {
		return errors.New("a swap file has at least 640 KiB")
	}
	return cleanAbs(s.Path)
}
