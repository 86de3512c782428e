package imagestore

import (
	"path"

	"github.com/fsnotify/fsnotify"
)

// watchSocket calls changed whenever something appears where the socket is to
// be. Directories on the way to it need not exist yet. Where the kernel refuses
// to tell, changed is never called.
func watchSocket(socket string, changed func()) (stop func()) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return func() {}
	}
	watchWay(w, socket)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range w.Events {
			watchWay(w, socket)
			changed()
		}
	}()
	go func() {
		for range w.Errors { // they must be read for events to go on
			continue
		}
	}()
	return func() {
		_ = w.Close() // it only watched
		<-done
	}
}

// watchWay watches the directories that lead to the socket, outermost first: one
// that appears meanwhile is told by its parent.
func watchWay(w *fsnotify.Watcher, socket string) {
	var way []string
	for dir := path.Dir(socket); dir != "/" && dir != "."; dir = path.Dir(dir) {
		way = append([]string{dir}, way...)
	}
	for _, dir := range way {
		if w.Add(dir) != nil {
			return
		}
	}
}
