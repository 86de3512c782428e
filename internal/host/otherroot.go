package host

import "errors"

// ErrOtherRoot is the answer to Run, WriteValue and Mounts where the files are those of
// another root: none of its programs runs, and the kernel is not its.
var ErrOtherRoot = errors.New("not possible under another root directory")
