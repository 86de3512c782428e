package kubelet

// registrationFlag is a flag of a Node's registration in the flags file.
const registrationFlag = `--(?:node-labels|register-with-taints)=[^ "\n]*`

// registrationOnly is the text of kubelet's files by which it goes when it creates its
// Node, and not afterwards: labels and taints. Flags go with one of the blanks around
// them, and the field of the configuration with the comma before it, so that a file
// which has them is like one that never had.
func registrationOnly() map[string][]string {
	return map[string][]string{
		FlagsFile:  {`(?m)^` + nodeLabels + `=.*\n`, registrationFlag + ` `, ` ?` + registrationFlag},
		ConfigFile: {`,\n    "registerWithTaints": (?:\[\]|null|\[\n(?:     .*\n)*    \])`},
	}
}
