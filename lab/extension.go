package lab

import (
	"context"
	"fmt"
	"path"
	"strconv"
)

// extensionDir is where Azure's CustomScript extension keeps what its commands
// print, one numbered directory per run.
const extensionDir = "/var/lib/waagent/custom-script/download"

// extensionTail is how much of each stream the extension reports, in bytes.
const extensionTail = 4096

// RunExtension runs a command in the node as Azure's CustomScript extension
// does: by /bin/sh in a numbered download directory, output to files there. It
// returns the status message that the extension reports, which holds the end
// of both streams, and the command's exit code.
func (n *Node) RunExtension(ctx context.Context, command string) (message string, code int, err error) {
	dir, err := n.nextDownload(ctx)
	if err != nil {
		return "", 0, err
	}
	r, err := n.Exec(ctx, "/bin/sh", "-c", `cd "$1" && exec /bin/sh -c "$2" >stdout 2>stderr`, "sh", dir, command)
	if err != nil {
		return "", 0, err
	}
	stdout, err := n.tail(path.Join(dir, "stdout"))
	if err != nil {
		return "", 0, err
	}
	stderr, err := n.tail(path.Join(dir, "stderr"))
	if err != nil {
		return "", 0, err
	}
	return extensionMessage(r.Code, stdout, stderr), r.Code, nil
}

func extensionMessage(code int, stdout, stderr string) string {
	if code == 0 {
		return fmt.Sprintf("Enable succeeded: \n[stdout]\n%s\n[stderr]\n%s", stdout, stderr)
	}
	return fmt.Sprintf("Enable failed: failed to execute command: command terminated with exit status=%d\n[stdout]\n%s\n\n[stderr]\n%s", code, stdout, stderr)
}

// nextDownload makes the download directory with the first free number.
func (n *Node) nextDownload(ctx context.Context) (string, error) {
	if err := n.Run(ctx, "mkdir", "-p", "-m", "0700", extensionDir); err != nil {
		return "", err
	}
	for i := 0; ; i++ {
		dir := path.Join(extensionDir, strconv.Itoa(i))
		if !n.Exists(dir) {
			return dir, n.Run(ctx, "mkdir", "-m", "0700", dir)
		}
	}
}

func (n *Node) tail(file string) (string, error) {
	b, err := n.ReadFile(file)
	if len(b) > extensionTail {
		b = b[len(b)-extensionTail:]
	}
	return string(b), err
}
