package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/provision"
)

// finding is what one check has to say, in any number of notes.
type finding struct {
	notes []note
	field string
}

type note struct {
	status       Status
	text, remedy string
}

func (f *finding) add(s Status, remedy, format string, args ...any) *finding {
	f.notes = append(f.notes, note{s, fmt.Sprintf(format, args...), remedy})
	return f
}

func (f *finding) ok(format string, args ...any) *finding { return f.add(OK, "", format, args...) }

func (f *finding) warn(remedy, format string, args ...any) *finding {
	return f.add(Warning, remedy, format, args...)
}

func (f *finding) fail(remedy, format string, args ...any) *finding {
	return f.add(Error, remedy, format, args...)
}

func (f *finding) unknown(remedy, format string, args ...any) *finding {
	return f.add(Unknown, remedy, format, args...)
}

// at names the field of the document that it is about.
func (f *finding) at(field string) *finding {
	f.field = field
	return f
}

func okf(format string, args ...any) *finding { return (&finding{}).ok(format, args...) }

func warnf(remedy, format string, args ...any) *finding {
	return (&finding{}).warn(remedy, format, args...)
}

func failf(remedy, format string, args ...any) *finding {
	return (&finding{}).fail(remedy, format, args...)
}

func unknownf(remedy, format string, args ...any) *finding {
	return (&finding{}).unknown(remedy, format, args...)
}

// asRoot is the remedy for what others may not see.
const asRoot = "run it as root"

// remedyFor is what helps against an error of reading; "" where that is not known.
func remedyFor(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return asRoot
	}
	return ""
}

// helps is what helps against an error of berth's own rooms.
func helps(err error) string {
	return cmp.Or(provision.ExplainCommand(err).Hint, "put right what is named")
}

// unread says that something could not be read: for want of rights, or why.
func (f *finding) unread(what string, err error) *finding {
	if remedy := remedyFor(err); remedy != "" {
		return f.unknown(remedy, "%s is for root to read", what)
	}
	return f.unknown("", "%s can't be read: %v", what, err)
}

func unread(what string, err error) *finding { return (&finding{}).unread(what, err) }

// result says the worst first, each in a line of its own. What is well is not worth a
// word beside what is not.
func (f *finding) result() Result {
	r := Result{Status: OK, Field: f.field}
	var texts, remedies []string
	for _, s := range slices.Backward(worse) {
		if s == OK && len(texts) > 0 {
			break
		}
		for _, n := range f.notes {
			if n.status != s {
				continue
			}
			if len(texts) == 0 {
				r.Status = s
			}
			texts = append(texts, n.text)
			if n.remedy != "" && !slices.Contains(remedies, n.remedy) {
				remedies = append(remedies, n.remedy)
			}
		}
	}
	between := "\n"
	if r.Status == OK {
		between, r.Field = "; ", ""
	}
	r.Finding, r.Remedy = strings.Join(texts, between), strings.Join(remedies, "\n")
	return r
}
