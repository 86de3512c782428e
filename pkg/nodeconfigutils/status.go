package nodeconfigutils

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
)

// CSEStatus is the result of provisioning, as provision-wait prints it and the extension returns it.
// All values are strings, as published.
type CSEStatus struct {
	ExitCode                string // decimal; "0" is success
	Output                  string // end of the log
	Error                   string
	ExecDuration            string // seconds
	KernelStartTime         string
	CloudInitLocalStartTime string
	CloudInitStartTime      string
	CloudFinalStartTime     string
	NetworkdStartTime       string
	CSEStartTime            string
	GuestAgentStartTime     string
	SystemdSummary          string // systemd-analyze's line
	BootDatapoints          BootDatapoints
}

// BootDatapoints are times of the boot that provisioned.
type BootDatapoints struct {
	KernelStartTime     string
	CSEStartTime        string
	GuestAgentStartTime string
	KubeletStartTime    string
}

// ErrNoStatus is a message without a result in it.
var ErrNoStatus = errors.New("the message holds no provisioning status")

var exitStatus = regexp.MustCompile(`exit status=(\d+)`)

// ParseCSEStatus finds the result in the message that the CustomScript extension returns: a JSON document
// after [stdout] and before [stderr], perhaps with other text around it. Where there is none but the
// extension names an exit status, that is the result's ExitCode. Else the error is ErrNoStatus.
func ParseCSEStatus(message string) (*CSEStatus, error) {
	printed, all := stdout(message)
	if status := cmp.Or(statusIn(printed), statusIn(all)); status != nil {
		return status, nil
	}
	if m := exitStatus.FindStringSubmatch(message); m != nil {
		return &CSEStatus{ExitCode: m[1], Error: ErrNoStatus.Error()}, nil
	}
	return nil, ErrNoStatus
}

// stdout is the part of the message that the command printed: first by the marks, then to the message's end,
// since a log in the result may hold a mark itself. The extension returns the last 4 KiB, so the marks may be missing.
func stdout(message string) (printed, all string) {
	if _, after, found := strings.Cut(message, "[stdout]"); found {
		message = after
	}
	if i := strings.LastIndex(message, "[stderr]"); i >= 0 {
		return message[:i], message
	}
	return message, message
}

func statusIn(text string) *CSEStatus {
	for i := strings.IndexByte(text, '{'); i >= 0; i = next(text, i) {
		if status := statusAt(text[i:]); status != nil {
			return status
		}
	}
	return nil
}

func next(text string, i int) int {
	j := strings.IndexByte(text[i+1:], '{')
	if j < 0 {
		return -1
	}
	return i + 1 + j
}

// statusAt reads a status at the start of text; other JSON objects are not one.
func statusAt(text string) *CSEStatus {
	var raw json.RawMessage
	if json.NewDecoder(strings.NewReader(text)).Decode(&raw) != nil {
		return nil
	}
	var status CSEStatus
	if json.NewDecoder(bytes.NewReader(raw)).Decode(&status) != nil || status.ExitCode == "" {
		return nil
	}
	return &status
}
