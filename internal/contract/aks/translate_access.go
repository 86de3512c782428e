package aks

import "github.com/berth-dev/berth/internal/component/motd"

// message is what a login shows.
func (t *translation) message() error {
	t.add("message_of_the_day", motd.Resources(greeting(t))...)
	return nil
}

// greets: text that is no base64 is accepted, as published, and shows nothing.
func greets(t *translation) bool { return len(greeting(t)) > 0 }

func greeting(t *translation) []byte {
	b, err := unbase64("message_of_the_day", t.cfg.GetMessageOfTheDay())
	if err != nil {
		return nil
	}
	return b
}
