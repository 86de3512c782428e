package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/pluginpb"
)

// Generate compiles every .proto file below dir and returns the Go code by path relative to dir.
func Generate(dir string) (map[string][]byte, error) {
	names, err := protoFiles(dir)
	if err != nil {
		return nil, err
	}
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{dir}},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(context.Background(), names...)
	if err != nil {
		return nil, err
	}
	return generate(request(names, compiled))
}

func protoFiles(dir string) ([]string, error) {
	var names []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".proto" {
			names = append(names, path)
		}
		return err
	})
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("no .proto file below %s", dir)
	}
	return names, err
}

// request puts dependencies before their users, as protoc does.
func request(names []string, compiled linker.Files) *pluginpb.CodeGeneratorRequest {
	req := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: names,
		Parameter:      proto.String("paths=source_relative"),
	}
	seen := map[string]bool{}
	var add func(linker.File)
	add = func(f linker.File) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.FindImportByPath(f.Imports().Get(i).Path()))
		}
		req.ProtoFile = append(req.ProtoFile, protoutil.ProtoFromFileDescriptor(f))
	}
	for _, f := range compiled {
		add(f)
	}
	return req
}

func generate(req *pluginpb.CodeGeneratorRequest) (map[string][]byte, error) {
	plugin, err := protogen.Options{}.New(req)
	if err != nil {
		return nil, err
	}
	for _, f := range plugin.Files {
		if f.Generate {
			internal_gengo.GenerateFile(plugin, f)
		}
	}
	resp := plugin.Response()
	if resp.Error != nil {
		return nil, errors.New(resp.GetError())
	}
	out := map[string][]byte{}
	for _, f := range resp.File {
		out[f.GetName()] = []byte(withoutProtocLine(f.GetContent()))
	}
	return out, nil
}

// withoutProtocLine drops the header line that names a protoc version: there is no protoc.
func withoutProtocLine(text string) string {
	before, after, found := strings.Cut(text, "// \tprotoc ")
	if !found {
		return text
	}
	_, rest, _ := strings.Cut(after, "\n")
	return before + rest
}
