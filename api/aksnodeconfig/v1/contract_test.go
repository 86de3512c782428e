package aksnodeconfigv1_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

// contract.txt is the published contract, one item a line:
//
//	field MESSAGE NUMBER NAME TYPE PRESENCE JSON_NAME
//	enum ENUM NUMBER NAME
//	reserved MESSAGE NUMBERS NAMES
//
// It is written once and reviewed. A line may be added; a changed or missing line breaks documents
// that are on disks and in images.
func publishedLines(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/contract.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	slices.Sort(lines)
	return lines
}

func TestContractIsThePublishedOne(t *testing.T) {
	got := contractLines()
	if diff := cmp.Diff(publishedLines(t), got); diff != "" {
		t.Errorf("contract differs from the published one (-want +got):\n%s", diff)
	}
}

func TestContractCounts(t *testing.T) {
	got := map[string]int{}
	for _, line := range publishedLines(t) {
		f := strings.Fields(line)
		got[f[0]]++
		got["distinct "+f[0]+" "+f[1]] = 1
	}
	messages, enums := 0, 0
	for k := range got {
		if strings.HasPrefix(k, "distinct field ") {
			messages++
		}
		if strings.HasPrefix(k, "distinct enum ") {
			enums++
		}
	}
	if messages != 32 || got["field"] != 257 || enums != 8 {
		t.Errorf("messages %d, fields %d, enums %d; want 32, 257, 8", messages, got["field"], enums)
	}
}

// Everything that may hold a credential is redacted by reflection, so the list is pinned as well.
func TestSecretFields(t *testing.T) {
	var got []string
	eachField(func(f protoreflect.FieldDescriptor) {
		if f.Options().(*descriptorpb.FieldOptions).GetDebugRedact() {
			got = append(got, string(f.Parent().Name()+"."+f.Name()))
		}
	})
	slices.Sort(got)
	want := []string{
		"AuthConfig.service_principal_secret",
		"BootstrappingConfig.tls_bootstrapping_token",
		"CustomSearchDomainConfig.realm_password",
		"HttpProxyConfig.http_proxy",
		"HttpProxyConfig.https_proxy",
		"KubeletConfig.kubelet_client_key",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func contractLines() []string {
	var out []string
	eachField(func(f protoreflect.FieldDescriptor) {
		out = append(out, fmt.Sprintf("field %s %d %s %s %s %s",
			f.Parent().Name(), f.Number(), f.Name(), typeName(f), presence(f), f.JSONName()))
	})
	eachFile(func(file protoreflect.FileDescriptor) {
		for i := range file.Enums().Len() {
			e := file.Enums().Get(i)
			for j := range e.Values().Len() {
				v := e.Values().Get(j)
				out = append(out, fmt.Sprintf("enum %s %d %s", e.Name(), v.Number(), v.Name()))
			}
		}
		for i := range file.Messages().Len() {
			m := file.Messages().Get(i)
			if m.ReservedNames().Len() > 0 {
				out = append(out, fmt.Sprintf("reserved %s %s %s", m.Name(), reservedNumbers(m), reservedNames(m)))
			}
		}
	})
	slices.Sort(out)
	return out
}

func eachFile(do func(protoreflect.FileDescriptor)) {
	pkg := (&aksnodeconfigv1.Configuration{}).ProtoReflect().Descriptor().ParentFile().Package()
	protoregistry.GlobalFiles.RangeFilesByPackage(pkg, func(f protoreflect.FileDescriptor) bool {
		do(f)
		return true
	})
}

func eachField(do func(protoreflect.FieldDescriptor)) {
	eachFile(func(file protoreflect.FileDescriptor) {
		for i := range file.Messages().Len() {
			fields := file.Messages().Get(i).Fields()
			for j := range fields.Len() {
				do(fields.Get(j))
			}
		}
	})
}

func typeName(f protoreflect.FieldDescriptor) string {
	switch {
	case f.IsMap():
		return fmt.Sprintf("map<%s,%s>", typeName(f.MapKey()), typeName(f.MapValue()))
	case f.Message() != nil:
		return string(f.Message().Name())
	case f.Enum() != nil:
		return string(f.Enum().Name())
	}
	return f.Kind().String()
}

func presence(f protoreflect.FieldDescriptor) string {
	switch {
	case f.IsMap():
		return "map"
	case f.IsList():
		return "repeated"
	case f.Message() != nil:
		return "message"
	case f.HasOptionalKeyword():
		return "optional"
	}
	return "implicit"
}

func reservedNumbers(m protoreflect.MessageDescriptor) string {
	var out []string
	for i := range m.ReservedRanges().Len() {
		r := m.ReservedRanges().Get(i)
		for n := r[0]; n < r[1]; n++ {
			out = append(out, fmt.Sprint(n))
		}
	}
	return strings.Join(out, ",")
}

func reservedNames(m protoreflect.MessageDescriptor) string {
	var out []string
	for i := range m.ReservedNames().Len() {
		out = append(out, string(m.ReservedNames().Get(i)))
	}
	return strings.Join(out, ",")
}
