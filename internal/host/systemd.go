package host

import (
	"context"
	"errors"
	"time"
)

// Systemd is the service manager. Without one (under a root directory) every
// method returns ErrNoSystemd.
type Systemd interface {
	// Unit describes a unit; one that does not exist has LoadState "not-found", one
	// that runs and whose definition has gone too. A template is no unit: its own
	// name is refused with ErrNotAUnit, here and in every job.
	Unit(ctx context.Context, name string) (UnitStatus, error)
	// Loaded says whether systemd has loaded a unit, by this name or as what it is an alias
	// of, and does not load it. Every other question makes it load the unit, anew each time
	// where no other refers to it.
	Loaded(ctx context.Context, name string) (bool, error)
	// NotFound are those of some units of which systemd knows nothing and finds no definition,
	// in order. All are asked for at once, in about the time of one of Unit.
	NotFound(ctx context.Context, names ...string) ([]string, error)
	// State describes what a unit does, and not what it is: see UnitStatus.State. Unit takes
	// six times as long where systemd has loaded the unit a moment ago. Its fields are told
	// one after the other: a unit that ends meanwhile may be seen half before, half after.
	State(ctx context.Context, name string) (UnitStatus, error)
	// Invocation is the InvocationID of a unit alone, in a tenth of the time.
	Invocation(ctx context.Context, name string) (string, error)
	// ListUnits lists what systemd has loaded whose name matches one of the shell
	// patterns (all of it if there is none), by name. Only Name, LoadState,
	// ActiveState, SubState and Following are told; aliases do not count.
	ListUnits(ctx context.Context, patterns ...string) ([]UnitStatus, error)
	// DaemonReload rereads all definitions.
	DaemonReload(ctx context.Context) error
	// StartUnit, StopUnit, RestartUnit and ReloadUnit enqueue a job and wait for
	// its real result; a result other than "done" is a *JobError, a job that is
	// not accepted a *UnitError. When ctx ends first, the job goes on. Stopping a
	// unit that does not exist is done. Starting a unit that is being started joins
	// that start: no new run begins. A start that a condition prevents is done.
	// A socket whose service runs can't be started: the job fails, and a restart has
	// stopped it by then. A restart does not wait for the units it takes along.
	//
	// StartUnit has the kernel read files ahead which the unit is going to read, as soon as
	// systemd has the job and not before: it reads the unit's definition from the same disk.
	// Files that are not there are left out.
	StartUnit(ctx context.Context, name string, ahead ...string) error
	StopUnit(ctx context.Context, name string) error
	RestartUnit(ctx context.Context, name string) error
	ReloadUnit(ctx context.Context, name string) error
	// ExpectJobs is called where jobs are going to follow within a second, so that what they
	// would wait for in the kernel is over by then. It does not wait, and ends with ctx.
	ExpectJobs(ctx context.Context)
	// Enqueue has systemd do a job ("start", "restart", "reload") and does not wait for it: who
	// is a part of a boot would wait for what waits for it. The error is that of a job that is
	// not accepted.
	Enqueue(ctx context.Context, job, name string) error
	// ResetFailed clears a unit's failed state and its start limit, if it has any.
	ResetFailed(ctx context.Context, name string) error
}

// ErrNoSystemd is the answer where there is no service manager.
var ErrNoSystemd = errors.New("no service manager here")

// UnitStatus is what systemd knows of a unit. Field names are those of
// org.freedesktop.systemd1.
type UnitStatus struct {
	// Name is the name that was asked for.
	Name string
	// ID is the unit's real name: for an alias that of the unit it leads to. Names
	// are all of its names that systemd knows, in order.
	ID          string
	Names       []string
	LoadState   string // loaded, not-found, masked, bad-setting, error
	ActiveState string // active, reloading, inactive, failed, activating, deactivating
	SubState    string
	// Following is the unit whose state this one shows, "" for one that has its own: of a
	// device or a swap area with several names in /dev systemd has a unit for each name.
	Following string
	// UnitFileState is enabled, disabled, static, masked, indirect (an alias leads to
	// it), linked (it stands elsewhere), bad (it has gone), … as systemd found it when
	// it was first asked after it had loaded the unit: links that changed since show
	// after DaemonReload.
	UnitFileState string
	// FragmentPath is spelled as systemd searches: Debian 12 says /lib/systemd/system
	// for what is in /usr/lib/systemd/system, but not so in DropInPaths, which holds
	// drop-ins that are masked, too.
	FragmentPath string
	DropInPaths  []string
	// NeedDaemonReload is what systemd finds, by time of change. It does not
	// notice a definition of higher precedence that is new, a definition that became
	// a link to /dev/null, links in .wants, .requires and .upholds, aliases, nor a drop-in
	// directory that is new (that one as soon as it loads any other unit). It is
	// false for a unit that does nothing and that no other names: of such a one
	// systemd keeps nothing, and reads it anew each time.
	NeedDaemonReload bool
	// InvocationID is 32 hex digits of the present (or last) run; empty if never
	// started. systemd forgets it, and the fields below, once a unit that no other
	// refers to is inactive: a oneshot service without RemainAfterExit= has none.
	InvocationID string
	// ActiveEnter is when the unit became active; zero if never.
	ActiveEnter time.Time
	// ActiveFor is how long the unit has been active, whatever was done to the clock
	// meanwhile; zero for one that is not.
	ActiveFor time.Duration
	// Result is of the last run; "" for types of units that have none.
	Result    string // success, exit-code, signal, timeout, …
	NRestarts uint32
	MainPID   uint32
	// ExecMainStart is when the main process started; zero if never.
	ExecMainStart  time.Time
	ExecMainStatus int32

	// ServiceType is Type= of a service, "" of any other unit.
	ServiceType     string
	RemainAfterExit bool

	// ConditionResult and AssertResult are those of the last start, at
	// ConditionTime; zero if the unit was never started. Where systemd has forgotten
	// them they are what it said while this process was connected: a unit that
	// nobody refers to and that was skipped still shows it.
	ConditionResult bool
	AssertResult    bool
	ConditionTime   time.Time
	// Queued: a job of it waits or runs.
	Queued bool
	// CanStart and CanReload say whether such a job is accepted from outside.
	CanStart, CanReload bool

	// Triggers are the units that this one starts (a socket its service),
	// TriggeredBy those that start this one.
	Triggers, TriggeredBy []string
	// Needs are the units whose stop or restart takes this one along: Requires=,
	// Requisite=, BindsTo= and PartOf= joined, in order. Dependents are the units
	// that this one takes along, of those that systemd has loaded.
	Needs, Dependents []string
	// Requires are those of Needs without which this one does not start: Requires=,
	// Requisite= and BindsTo=. A start of this one starts the others along.
	Requires []string
	// After are the units that this one starts after, and stops before.
	After []string
}

// State are the fields that Systemd.State tells: of a unit that runs, where it is at, what
// its last start said, what it consists of, and whether that is old.
func (u UnitStatus) State() UnitStatus {
	return UnitStatus{
		Name: u.Name, ID: u.ID, LoadState: u.LoadState, ActiveState: u.ActiveState, SubState: u.SubState,
		FragmentPath: u.FragmentPath, DropInPaths: u.DropInPaths, NeedDaemonReload: u.NeedDaemonReload, InvocationID: u.InvocationID,
		Result: u.Result, NRestarts: u.NRestarts, MainPID: u.MainPID, ExecMainStart: u.ExecMainStart, ExecMainStatus: u.ExecMainStatus,
		ServiceType: u.ServiceType, RemainAfterExit: u.RemainAfterExit,
		ConditionResult: u.ConditionResult, AssertResult: u.AssertResult, ConditionTime: u.ConditionTime,
	}
}

// JobError is a job that ended otherwise than done.
type JobError struct {
	Unit string
	// Job is start, stop, restart or reload.
	Job string
	// Result is systemd's word: failed, timeout, canceled, dependency, skipped …
	Result string
	// Status is the unit as it was found afterwards.
	Status UnitStatus
}

// Error implements error.
func (e *JobError) Error() string {
	return e.Job + " " + e.Unit + ": job result " + e.Result + " (unit " + e.Status.ActiveState + ", result " + e.Status.Result + ")"
}
