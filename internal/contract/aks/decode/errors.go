package decode

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/util/validation/field"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

type fieldError struct {
	location location
	offset   int
	err      *field.Error
}

type offsetNote struct {
	Note
	offset int
}

func unreadable(e *syntaxError) *field.Error {
	return &field.Error{Type: field.ErrorTypeInvalid, BadValue: field.OmitValueType{}, Detail: e.reason}
}

func (d *decoder) refuse(at location, offset int, err *field.Error) {
	d.errs = append(d.errs, fieldError{at, offset, err})
}

func (d *decoder) note(kind NoteKind, path *field.Path, offset int, detail string) {
	line, _ := lineColumn(d.data, offset)
	d.notes = append(d.notes, offsetNote{Note{Kind: kind, Path: path.String(), Line: line, Detail: detail}, offset})
}

// remark gives the notes of the validator their positions.
func (d *decoder) remark(notes []remark) {
	for _, n := range notes {
		d.note(Normalized, n.location.path, d.nearest(n.location.canonical), n.detail)
	}
}

// wrongType complains about a value that can't be read as what the contract wants.
func (d *decoder) wrongType(at location, fd protoreflect.FieldDescriptor, n *node, want string) {
	d.refuse(at, n.offset, field.TypeInvalid(at.path, shownNode(fd, n), "expected "+want+", got "+n.kind.String()))
}

func duplicate(at location) *field.Error {
	return &field.Error{Type: field.ErrorTypeDuplicate, Field: at.String(), BadValue: field.OmitValueType{}, Detail: "the document sets it twice"}
}

func (d *decoder) failed() map[string]bool {
	out := map[string]bool{}
	for _, f := range d.errs {
		out[f.location.canonical] = true
	}
	return out
}

// located gives the errors of the validator their offsets: that of the value, else of the nearest object around it.
func (d *decoder) located(errs []fieldError) []fieldError {
	for i, f := range errs {
		errs[i].offset = d.nearest(f.location.canonical)
	}
	return errs
}

func (d *decoder) nearest(canonical string) int {
	for {
		if offset, ok := d.offsets[canonical]; ok || canonical == "" {
			return offset
		}
		canonical = parent(canonical)
	}
}

func (d *decoder) refusal(errs []fieldError) *DocumentError {
	slices.SortStableFunc(errs, func(a, b fieldError) int { return cmp.Compare(a.offset, b.offset) })
	out := &DocumentError{Code: CodeRefused}
	for _, f := range errs {
		line, column := lineColumn(d.data, f.offset)
		out.Errors = append(out.Errors, FieldError{Error: f.err, Line: line, Column: column})
	}
	return out
}

func (d *decoder) noteVersion(cfg *aksnodeconfigv1.Configuration) {
	if v := cfg.GetVersion(); v == "v0" {
		at := d.of(location{}, cfg.ProtoReflect().Descriptor().Fields().ByName("version"))
		d.note(Deprecated, at.path, d.offsets["version"], fmt.Sprintf("version %s is deprecated, write %s", v, currentVersion))
	}
}

func (d *decoder) sortedNotes() []Note {
	slices.SortStableFunc(d.notes, func(a, b offsetNote) int { return cmp.Compare(a.offset, b.offset) })
	var out []Note
	for _, n := range d.notes {
		out = append(out, n.Note)
	}
	return out
}
