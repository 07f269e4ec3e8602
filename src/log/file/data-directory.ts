/**
 * Whether a directory is a broker's, by the names in it. The lock is the first that a broker makes, so what another
 * broker has begun a moment ago is told from what was there before any of them came.
 */
import { CHECKPOINT_FILE } from './checkpoint.ts'
import type { FileSystem } from './fs.ts'
import { JOURNAL_DIRECTORY } from './journal.ts'
import { LOGS_DIRECTORY } from './segment-paths.ts'

/** Of locks that were taken, and of those on their way. */
const LOCK = /^lock\.\d+$/
const LOCK_FILES = /^lock\.[\da-f]+(?:\.sock|\.new)?$/
const OWN: ReadonlySet<string> = new Set([
  CHECKPOINT_FILE,
  `${CHECKPOINT_FILE}.new`,
  JOURNAL_DIRECTORY,
  LOGS_DIRECTORY,
  // What salvage has put aside.
  'torn',
])
/** What file systems and people's desktops put into directories that hold nothing. */
const HOLLOW = /^(?:\..*|lost\+found|System Volume Information|Thumbs\.db|desktop\.ini)$/i

/** Whether the file system has a data directory. */
export async function isDataDirectory(fs: FileSystem): Promise<boolean> {
  if (await fs.exists(CHECKPOINT_FILE)) return true
  for (const name of [JOURNAL_DIRECTORY, LOGS_DIRECTORY]) if ((await fs.list(name)).length > 0) return true
  return (await fs.list('')).some((name) => LOCK.test(name))
}

/** What somebody else keeps in a directory that no broker has been in; nothing of one that is a broker's. */
export async function foreignNames(fs: FileSystem): Promise<string[]> {
  const names = await fs.list('')
  const foreign = names.filter((name) => !(OWN.has(name) || LOCK_FILES.test(name) || HOLLOW.test(name)))
  return foreign.length > 0 && !(await isDataDirectory(fs)) ? foreign : []
}
