package footprint

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestReadOnly(t *testing.T) {
	for line, want := range map[string]bool{
		"00400000-01234000 r-xp 00000000 08:01 12                     /usr/bin/berth":           true,
		"01234000-02345000 r--p 00e34000 08:01 12                     /usr/bin/berth":           true,
		"00400000-01234000 r-xp 00000000 08:01 12                     /usr/bin/berth (deleted)": false,
		"02345000-02346000 rw-p 01f45000 08:01 12                     /usr/bin/berth":           false,
		"01234000-02345000 r--s 00e34000 08:01 12                     /usr/bin/berth":           false,
		"7f0000000000-7f0000001000 r-xp 00000000 08:01 13             /usr/lib/other":           false,
		"c000000000-c000400000 rw-p 00000000 00:00 0 ":                                          false,
		"": false,
	} {
		start, end, ok := readOnly(line, "/usr/bin/berth")
		if ok != want || ok && start >= end {
			t.Errorf("%q: %v %x-%x", line, ok, start, end)
		}
	}
}

// TestUnchanged: pages that were relocated are not those of the file any more.
func TestUnchanged(t *testing.T) {
	const of = " 00000000 08:01 12                     /usr/bin/berth\n"
	fields := func(anonymous, swap string) string {
		return "Size: 4 kB\nPrivate_Dirty: 4 kB\nAnonymous: " + anonymous + " kB\nSwap: " + swap + " kB\nVmFlags: rd mr mw me\n"
	}
	smaps := "1000-2000 r-xp" + of + fields("0", "0") +
		"2000-3000 r--p" + of + fields("4", "4") +
		"3000-4000 r--p" + of + fields("0", "4") +
		"4000-5000 r--p" + of + fields("4", "0") +
		"5000-6000 rw-p" + of + fields("0", "0") +
		"6000-7000 r--p 00000000 08:01 13                     /usr/lib/other\n" + fields("0", "0") +
		"7000-8000 r--p" + of + "Rss: 4 kB\n" +
		"8000-9000 r--p" + of + fields("0", "0")
	if got, want := unchanged(smaps, "/usr/bin/berth"), []mapping{{0x1000, 0x2000}, {0x8000, 0x9000}}; !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

// TestGiveBack: the pages of the program that were touched are mapped no more.
func TestGiveBack(t *testing.T) {
	touchProgram(t)
	before := resident(t)
	GiveBack()
	after := resident(t)
	t.Logf("%d KiB of files are resident, %d before", after, before)
	if after*4 > before*3 {
		t.Error("they were not given back")
	}
	if err := dropProgram(); err != nil {
		t.Error(err)
	}
}

// TestProgramGoesBackAtRest: so do those that a process touches while it waits, and not only
// when garbage is collected.
func TestProgramGoesBackAtRest(t *testing.T) {
	was, bound := debug.SetGCPercent(percent), debug.SetMemoryLimit(-1)
	defer func() { debug.SetGCPercent(was); debug.SetMemoryLimit(bound) }()
	synctest.Test(t, func(t *testing.T) {
		f := Keep()
		defer f.rest.Stop()
		time.Sleep(calm + time.Second)
		for turn := range int64(collects + 1) {
			touchProgram(t)
			before := resident(t)
			time.Sleep(often)
			if after := resident(t); after*4 > before*3 {
				t.Errorf("turn %d: %d KiB of files are resident, %d before", turn, after, before)
			}
		}
	})
}

// touchProgram has every page of the program mapped.
func touchProgram(t *testing.T) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	for line := range strings.Lines(string(maps)) {
		start, end, ok := readOnly(line, os.Args[0])
		for page := start; ok && page < end; page += uintptr(os.Getpagesize()) {
			if _, err := memory.ReadAt(make([]byte, 1), int64(page)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// resident is how much of files is mapped, in KiB.
func resident(t *testing.T) (kib int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "RssFile:")
	if n, _ := fmt.Sscan(rest, &kib); !found || n != 1 {
		t.Fatalf("no RssFile in %s", text)
	}
	return kib
}

// TestCollectsWhileItWorks: the runtime collects garbage by itself while there is work, and not at rest.
func TestCollectsWhileItWorks(t *testing.T) {
	was, bound := debug.SetGCPercent(percent), debug.SetMemoryLimit(-1)
	defer func() { debug.SetGCPercent(was); debug.SetMemoryLimit(bound) }()
	synctest.Test(t, func(t *testing.T) {
		f := Keep()
		defer f.rest.Stop()
		want := func(when string, want int) {
			t.Helper()
			is := debug.SetGCPercent(percent)
			debug.SetGCPercent(is)
			if is != want {
				t.Errorf("%s: %d percent, want %d", when, is, want)
			}
		}
		want("at the start", percent)
		time.Sleep(calm + time.Second)
		want("at rest", -1)
		time.Sleep(often)
		f.Worked()
		want("after work", percent)
		time.Sleep(calm + time.Second)
		want("at rest again", -1)
	})
}
