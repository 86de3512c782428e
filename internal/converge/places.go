package converge

// Where berth keeps its own things (DESIGN, "Places").
const (
	stateDir     = "/var/lib/berth"
	ledgerPath   = stateDir + "/ledger.json"
	journalPath  = stateDir + "/journal.json"
	originalsDir = stateDir + "/originals"
	runDir       = "/run/berth"
	stampDir     = runDir + "/units"
	lockPath     = runDir + "/lock"
)
