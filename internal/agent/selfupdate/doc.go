// Package selfupdate puts another agent in the place of the one that runs, where a
// document asks for it: by the engine, as a trial that only the new one can confirm.
// Until it does, a timer of systemd's and the next boot bring the old one back, with
// the old one's program and without any process of berth having to live.
package selfupdate
