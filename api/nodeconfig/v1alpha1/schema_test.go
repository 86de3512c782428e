package v1alpha1

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/component/golden"
)

// object is a schema; its keys come out sorted.
type object = map[string]any

// narrower are the values that a field may have, by type and field.
var narrower = map[string]object{
	"NodeConfig.apiVersion":                  {"const": APIVersion},
	"NodeConfig.kind":                        {"const": Kind},
	"Cluster.server":                         {"pattern": "^https://[^/?#@]+/?$"},
	"Cluster.caFile":                         {"pattern": absolute},
	"Cluster.caCertHash":                     {"pattern": "^sha256:[0-9a-f]{64}$"},
	"BootstrapToken.tokenFile":               {"pattern": absolute},
	"BootstrapToken.tokenEnv":                {"pattern": variable},
	"BootstrapToken.token":                   {"pattern": `^[a-z0-9]{6}\.[a-z0-9]{16}$`},
	"ClientCertificate.certFile":             {"pattern": absolute},
	"ClientCertificate.keyFile":              {"pattern": absolute},
	"ManagedIdentity.clientId":               {"pattern": guid},
	"ManagedIdentity.tenantId":               {"pattern": guid},
	"ServicePrincipal.clientCertificateFile": {"pattern": absolute},
	"Azure.authority":                        {"pattern": address},
	"Azure.resourceManager":                  {"pattern": address},
	"Azure.serverId":                         {"pattern": guid},
	"Arc.subscriptionId":                     {"pattern": guid},
	"Arc.tenantId":                           {"pattern": guid},
	"ServicePrincipal.tenantId":              {"pattern": guid},
	"ServicePrincipal.clientId":              {"pattern": guid},
	"ServicePrincipal.clientSecretFile":      {"pattern": absolute},
	"ServicePrincipal.clientSecretEnv":       {"pattern": variable},
	"AzureCLI.tenantId":                      {"pattern": guid},
	"Kubernetes.version":                     {"pattern": release},
	"Kubernetes.sha256":                      {"pattern": digest},
	"Component.version":                      {"pattern": release},
	"Component.sha256":                       {"pattern": digest},
	"Node.name":                              {"pattern": `^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`, "maxLength": 253},
	"Node.maxPods":                           {"minimum": 0, "maximum": 1<<31 - 1},
	"Taint.effect":                           {"enum": []TaintEffect{NoSchedule, PreferNoSchedule, NoExecute}},
	"Networking.mode":                        {"enum": []NetworkMode{NetworkCluster, NetworkBridge}},
	"Networking.clusterDNS":                  {"maxItems": 3},
	"Networking.podCIDRs":                    {"maxItems": 2},
	"Kubernetes.urls[]":                      {"pattern": "^(https|http|oci|file)://"},
	"Component.urls[]":                       {"pattern": "^(https|http|oci|file)://"},
	"Proxy.noProxy[]":                        {"pattern": `^[^\s,"]+$`},
	"Trust.caFiles[]":                        {"pattern": absolute},
}

const (
	absolute = "^/"
	address  = "^https://[^/?#@]+/?$"
	variable = "^[A-Za-z_][A-Za-z0-9_]*$"
	guid     = "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"
	release  = `^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`
	digest   = "^[0-9a-fA-F]{64}$"
)

// TestSchemaIsGenerated writes schema.json out of the types and their comments.
func TestSchemaIsGenerated(t *testing.T) {
	g := generator{comments: comments(t), definitions: object{}, used: map[string]bool{}}
	schema := g.of(reflect.TypeFor[NodeConfig](), "NodeConfig")
	schema["$schema"], schema["title"], schema["$defs"] = "https://json-schema.org/draft/2020-12/schema", Kind, g.definitions
	b, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "../schema.json", string(b)+"\n")
	for name := range narrower {
		if !g.used[name] {
			t.Errorf("%s is no field", name)
		}
	}
}

type generator struct {
	comments    map[string]string
	definitions object
	used        map[string]bool
}

// of is the schema of a type at a path: TYPE.field, or TYPE.field[] for its items.
// null is as if it were not there, as the reader has it.
func (g *generator) of(t reflect.Type, at string) object {
	out := object{}
	switch t.Kind() {
	case reflect.Pointer:
		return g.of(t.Elem(), at)
	case reflect.Struct:
		if t.Name() != Kind {
			g.define(t)
			return object{"anyOf": []object{{"$ref": "#/$defs/" + t.Name()}, {"type": "null"}}}
		}
		return g.members(t)
	case reflect.Map:
		out["type"], out["additionalProperties"] = nullable("object"), g.of(t.Elem(), at+"[]")
	case reflect.Slice:
		if t == reflect.TypeFor[json.RawMessage]() {
			return object{"type": nullable("object")}
		}
		out["type"], out["items"] = nullable("array"), g.of(t.Elem(), at+"[]")
	default:
		out["type"] = nullable(map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Int32: "integer"}[t.Kind()])
	}
	for k, v := range narrower[at] {
		out[k], g.used[at] = v, true
	}
	return out
}

func nullable(name string) []string { return []string{name, "null"} }

func (g *generator) define(t reflect.Type) {
	if _, known := g.definitions[t.Name()]; known {
		return
	}
	g.definitions[t.Name()] = object{}
	g.definitions[t.Name()] = g.members(t)
}

func (g *generator) members(t reflect.Type) object {
	properties, required := object{}, []string{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := g.of(f.Type, t.Name()+"."+name)
		if text := g.comments[t.Name()+"."+f.Name]; text != "" {
			p["description"] = text
		}
		properties[name] = p
		if options == "" {
			required = append(required, name)
			strict(p)
		}
	}
	return object{"type": "object", "description": g.comments[t.Name()], "properties": properties,
		"required": required, "additionalProperties": false}
}

// strict: what must be there is not null.
func strict(p object) {
	if kinds, ok := p["type"].([]string); ok {
		p["type"] = kinds[0]
	}
	if any, ok := p["anyOf"].([]object); ok {
		delete(p, "anyOf")
		p["$ref"] = any[0]["$ref"]
	}
}

// comments are those of types and fields, by TYPE and TYPE.Field.
func comments(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "types.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range decl.Specs {
			spec, ok := s.(*ast.TypeSpec)
			if !ok {
				continue
			}
			out[spec.Name.Name] = oneLine(decl.Doc)
			if of, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range of.Fields.List {
					out[spec.Name.Name+"."+f.Names[0].Name] = oneLine(f.Doc)
				}
			}
		}
	}
	return out
}

func oneLine(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }
