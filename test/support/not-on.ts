/**
 * Tests that say something of the memory engine alone, and why. Everything else in the folders of `npm run test:engines`
 * holds on every engine. Titles are those of the describe blocks and the test, joined by ' > '.
 */

const REFERENCE = 'values are handed over by reference in memory alone'
const NOMINAL = 'sizes are nominal in memory alone; elsewhere they are those of the bytes'
const TEXT = 'keys and header values come back as text where their bytes are that'
const AT_ONCE = 'in memory alone, what is taken is durable, and evicts what it replaces, within the call'
const UNFLUSHED = 'what is not durable cannot be evicted: one turn takes no more than is retained'
const MARKS = 'before a hand-out a durable engine stores a mark, which takes a turn'
const HEAP = 'the disk, too, is in memory here'
const DEFAULTS = 'more is retained on disk where nothing is said'
const LOST = 'a log that is gone is damage there, which is refused'
const ENGINE = 'it is about timers and turns of the event loop, of which the engine needs some'

type Reasons = { readonly [file: string]: { readonly [title: string]: string } }

const ANY_OF_BYTES: Reasons = {
  'core/dead-letter.test.ts': {
    'a dead letter > is a copy of the record, with the headers of KIP-1191 beside its own': REFERENCE,
  },
  'core/lag.test.ts': {
    'maxLag of a drop-oldest reader > by bytes keeps as many of the newest as fit, to the byte': NOMINAL,
    'maxLag of a drop-oldest reader > holds whichever bound is reached first': NOMINAL,
    'maxLag of a drop-newest reader > by bytes misses what does not fit and takes in what does, one by one, whenever it looks':
      NOMINAL,
    'maxLag of a drop-newest reader > counts bytes anew after a replay': NOMINAL,
    'drop counters > are exact per reader: every record is settled or dropped, once, whatever happens in between':
      UNFLUSHED,
  },
  'core/overflow-signals.test.ts': {
    'topic.pressure > is the share by bytes where that is more, exactly those of the records held': NOMINAL,
    'topic.pressure > counts those who wait over their limit, in number and in bytes': NOMINAL,
    '"pressure" and "drain" > are exact by bytes, also when a few large records follow many small ones':
      NOMINAL,
    '"dropped" > is raised once for all that one turn dropped, with the range and the exact count': UNFLUSHED,
    '"dropped" > is raised per reader and partition': UNFLUSHED,
  },
  'core/publish.test.ts': {
    'publish > rejects instead of throwing, whatever is wrong': NOMINAL,
    'publish > keeps the very value, and a tombstone as null': REFERENCE,
    'publish > copies bytes given as a key, which the caller may reuse': TEXT,
    'publish > takes headers as an object literal, as pairs, and as those of a delivery': TEXT,
    'publish > counts what was accepted, and nothing else': NOMINAL,
    'sizes > count bytes by length, plus 64 a record': NOMINAL,
    'sizes > count strings by twice their length, plus 64 a record': NOMINAL,
    'sizes > count anything else flat, plus 64 a record': NOMINAL,
    'sizes > count a tombstone flat, plus 64 a record': NOMINAL,
    "sizes > count other values by the topic's sizeOf, rounded up": NOMINAL,
    'sizes > make a record that is larger than retention TOO_LARGE, be it the only one': NOMINAL,
  },
  'core/record.test.ts': {
    'the envelope of a record > is the same for every reader, and the value is the very object that was published':
      REFERENCE,
    'the value of a record > may be any falsy thing': REFERENCE,
  },
  'core/retention.test.ts': {
    'retention > by bytes keeps as many of the newest as fit, to the byte': NOMINAL,
    'retention > applies new limits at once, and an age that is set later': NOMINAL,
  },
  'core/topics.test.ts': {
    'describe and listTopics > tell marks, records, bytes and waiting publishers of every partition': NOMINAL,
  },
  'core/waiting.test.ts': {
    'publishers that wait for room > are bounded in bytes per topic, 10,000 records and 64 MiB by default':
      NOMINAL,
    'what can never fit > is TOO_LARGE at once, also while others wait': NOMINAL,
    'what waited for room is stored whole, in order: values, keys, headers and sizes': NOMINAL,
  },
}

/** Of an engine that flushes after the call, and stores marks before a hand-out. */
const ANY_THAT_FLUSHES: Reasons = {
  'coordinator/meanwhile.test.ts': {
    "a position that retention takes while it is looked up > is the earliest there is by then, for resetOffset(…, 'earliest')":
      AT_ONCE,
    'a position that retention takes while it is looked up > is out of range, for an offset': AT_ONCE,
    'a position that retention takes while it is looked up > is the earliest there is by then, for a reader that subscribes':
      AT_ONCE,
  },
  'core/delivery-expiry.test.ts': {
    'expiry > drops the record where its reader has been passed by its overflow meanwhile': MARKS,
  },
  'core/dispatcher.test.ts': {
    'a drain > polls nothing: a broker at rest asks for no turn and no timer': ENGINE,
  },
  'core/events.test.ts': {
    'lifecycle events > come in the order they happened, after the code that caused them, never inside it':
      UNFLUSHED,
    'lifecycle events > that are raised after the broker closed are heard, too': AT_ONCE,
  },
  'core/overflow.test.ts': {
    'overflow "drop-newest" > admits the oldest of a burst that no reader could have looked at meanwhile':
      UNFLUSHED,
  },
  'core/plain-run.test.ts': {
    'a run of records that are acked by returning > skips what its handler pushes out of the log, and counts it':
      AT_ONCE,
  },
  'core/portions.test.ts': {
    'room in a full log > is given out at once when an eighth of what is held has come together': AT_ONCE,
    'room in a full log > is given out at once where few records are held': AT_ONCE,
    'room in a full log > is given out at once by a reader that is at the end': AT_ONCE,
  },
  'core/publish.test.ts': {
    'a handler that publishes > grows the log to twice its retention at most, and waits then': AT_ONCE,
  },
  'core/reentrance.test.ts': {
    'looking at a reader from its own handler > judges overflow, and what it drops is not handed out after all':
      AT_ONCE,
  },
}

/** Of those whose disk is in memory, as in tests. */
const HEAPS: Reasons = {
  'core/overflow-stuck.test.ts': {
    'one stuck reader next to 99 fast ones > with drop-oldest and records of 1 MB keeps the heap flat, whatever is published':
      HEAP,
    'one stuck reader next to 99 fast ones > with drop-newest and records of 1 MB keeps the heap flat, whatever is published':
      HEAP,
  },
}

const FILES: Reasons = {
  'coordinator/commits.test.ts': {
    'after a crash > a log that lost what was committed gives its readers every new record': LOST,
  },
  'core/topics.test.ts': {
    'createTopic > retains 65,536 records and 256 MiB per partition, of any age, unless told otherwise':
      DEFAULTS,
    'alterTopic > never removes partitions, and changes nothing when it refuses': DEFAULTS,
  },
}

const ONLY: { readonly [engine: string]: readonly Reasons[] } = {
  memory: [],
  bytes: [ANY_OF_BYTES, ANY_THAT_FLUSHES, HEAPS],
  file: [ANY_OF_BYTES, ANY_THAT_FLUSHES, HEAPS, FILES],
}

/** Titles in `file` (below `test/`) that do not apply to `engine`, and why. */
export function notOn(engine: string, file: string): ReadonlyMap<string, string> {
  return new Map((ONLY[engine] ?? []).flatMap((reasons) => Object.entries(reasons[file] ?? {})))
}
