// Package report says what happened: provision.json and its sentinel, guest-agent
// events, the log and the timeline. It decides nothing and asks no other room what
// an error means; it writes through host.
package report
