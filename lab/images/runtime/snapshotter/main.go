// Command snapshotter has the place of an image's streaming snapshotter: containerd's own
// overlay snapshotter, served on a socket of its own.
package main

import (
	"log"
	"net"
	"os"
	"path/filepath"

	snapshotsapi "github.com/containerd/containerd/api/services/snapshots/v1"
	"github.com/containerd/containerd/v2/contrib/snapshotservice"
	"github.com/containerd/containerd/v2/plugins/snapshots/overlay"
	"github.com/coreos/go-systemd/v22/daemon"
	"google.golang.org/grpc"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: snapshotter SOCKET DIRECTORY")
	}
	log.Fatal(serve(os.Args[1], os.Args[2]))
}

func serve(socket, dir string) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return err
	}
	if err := os.RemoveAll(socket); err != nil {
		return err
	}
	own, err := overlay.NewSnapshotter(dir)
	if err != nil {
		return err
	}
	at, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	s := grpc.NewServer()
	snapshotsapi.RegisterSnapshotsServer(s, snapshotservice.FromSnapshotter(own))
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		return err
	}
	return s.Serve(at)
}
