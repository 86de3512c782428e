package exitcode

// What all commands end with but provision and provision-wait.
const (
	Failed             = 1
	Pending            = 2
	Warned             = 2
	Refused            = 3
	Kept               = 4
	CommandInterrupted = 130
)

var commands = []Code{
	{Number: OK, Meaning: "done"},
	{Number: Failed, Meaning: "failed, or the command line is wrong"},
	{Number: Pending, Meaning: "changes are pending (`plan`), or a warning counts (`preflight`, `doctor`)"},
	{Number: Refused, Meaning: "the document was refused"},
	{Number: Kept, Meaning: "done, but something was kept or left"},
	{Number: CommandInterrupted, Meaning: "interrupted"},
}
