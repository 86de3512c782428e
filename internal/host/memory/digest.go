package memory

import (
	"cmp"
	"hash/maphash"
	"reflect"
	"slices"
	"sync"
	"time"
)

var digestSeed = maphash.MakeSeed()

// Digest is equal for machines that go the same way from here, in this process, if the
// same is done to both. It is of all their state but for where the clock stands, how many
// inodes there ever were, the times of directories, and what Clone leaves behind.
func (h *Host) Digest() uint64 {
	h.jobMu.Lock()
	defer h.jobMu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	d := digester{seen: map[uintptr]uint64{}}
	d.hash.SetSeed(digestSeed)
	d.fields(reflect.ValueOf(h).Elem())
	return d.hash.Sum64()
}

// digester goes through values by reflection, so that no field is forgotten. A pointer
// counts as the number of what it leads to, in the order of visits.
type digester struct {
	hash maphash.Hash
	seen map[uintptr]uint64
}

// leftOut are fields that do not count, by type.
var leftOut = map[reflect.Type][]string{
	reflect.TypeFor[Host]():    {"now", "nextIno", "locks", "programs", "watchers"},
	reflect.TypeFor[manager](): {"behaviours", "tree", "treeAt"},
}

var (
	inodeType        = reflect.TypeFor[inode]()
	timesOfDirectory = []string{"mtime", "ctime"}
)

func (d *digester) fields(v reflect.Value) {
	without := leftOut[v.Type()]
	if v.Type() == inodeType && !v.FieldByName("durable").IsNil() {
		without = timesOfDirectory
	}
	for i := range v.NumField() {
		if !slices.Contains(without, v.Type().Field(i).Name) {
			d.value(v.Field(i))
		}
	}
}

func (d *digester) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		d.pointer(v)
	case reflect.Struct:
		d.structure(v)
	case reflect.Map:
		d.entries(v)
	case reflect.Slice, reflect.Array:
		d.elements(v)
	case reflect.String:
		d.text(v.String())
	case reflect.Interface:
		d.value(v.Elem())
	default:
		d.number(scalar(v))
	}
}

func (d *digester) pointer(v reflect.Value) {
	if v.IsNil() {
		d.number(0)
		return
	}
	n := d.seen[v.Pointer()]
	if d.number(n); n == 0 {
		d.seen[v.Pointer()] = uint64(len(d.seen) + 1)
		d.value(v.Elem())
	}
}

func (d *digester) structure(v reflect.Value) {
	switch v.Type() {
	case reflect.TypeFor[sync.Mutex]():
	case reflect.TypeFor[time.Time](): // all are in UTC, without a monotonic clock
		d.number(v.Field(0).Uint())
		d.number(scalar(v.Field(1)))
	default:
		d.fields(v)
	}
}

func (d *digester) entries(v reflect.Value) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	d.number(uint64(len(keys)))
	for _, key := range keys {
		d.text(key.String())
		d.value(v.MapIndex(key))
	}
}

func (d *digester) elements(v reflect.Value) {
	d.number(uint64(v.Len()))
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		_, _ = d.hash.Write(v.Bytes())
		return
	}
	for i := range v.Len() {
		d.value(v.Index(i))
	}
}

func (d *digester) text(s string) {
	d.number(uint64(len(s)))
	_, _ = d.hash.WriteString(s)
}

func (d *digester) number(n uint64) { maphash.WriteComparable(&d.hash, n) }

// scalar is a value in one word; a function is its code.
func scalar(v reflect.Value) uint64 {
	switch {
	case !v.IsValid():
		return 0
	case v.Kind() == reflect.Bool && v.Bool():
		return 1
	case v.Kind() == reflect.Bool:
		return 0
	case v.CanInt():
		return uint64(v.Int())
	case v.CanUint():
		return v.Uint()
	case v.Kind() == reflect.Func:
		return uint64(v.Pointer())
	}
	panic("a machine has a value of the type " + v.Type().String())
}
