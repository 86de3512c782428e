package artifact

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Sizes and marks of ar(5), as deb(5) has it.
const (
	debMagic     = "!<arch>\n"
	arHeaderSize = 60
	arEnd        = "`\n"
)

// isDeb says whether content is a Debian package.
func isDeb(in *bufio.Reader) bool {
	head, _ := in.Peek(len(debMagic)) // content that is shorter is none
	return string(head) == debMagic
}

// debData is what a Debian package installs: its member data.tar, compressed in
// some way. What comes after that is not looked at.
func debData(in io.Reader) (io.Reader, error) {
	if _, err := io.CopyN(io.Discard, in, int64(len(debMagic))); err != nil {
		return nil, err
	}
	header := make([]byte, arHeaderSize)
	for {
		if _, err := io.ReadFull(in, header); errors.Is(err, io.EOF) {
			return nil, errors.New("a Debian package without data.tar")
		} else if err != nil {
			return nil, fmt.Errorf("read Debian package: %w", err)
		}
		name := strings.TrimRight(strings.TrimRight(string(header[:16]), " "), "/")
		size, err := strconv.ParseInt(strings.TrimRight(string(header[48:58]), " "), 10, 64)
		if err != nil || size < 0 || string(header[58:]) != arEnd {
			return nil, fmt.Errorf("read Debian package: %q is no header of a member", header)
		}
		if name == "data.tar" || strings.HasPrefix(name, "data.tar.") {
			return io.LimitReader(in, size), nil
		}
		if _, err := io.CopyN(io.Discard, in, size+size%2); err != nil {
			return nil, fmt.Errorf("read Debian package: member %s: %w", name, err)
		}
	}
}
