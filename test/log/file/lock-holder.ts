/**
 * A process that locks directories as it is told on its standard input, a line each, and answers a line each:
 * `lock <directory>`, `release`. It says its process id first, and ends with its input, if nothing keeps it.
 */
import { createInterface } from 'node:readline'
import { type DirectoryLock, lockDirectory } from '../../../src/log/file/lock-node.ts'
import { OdradekError } from '../../../src/model/errors.ts'

let held: DirectoryLock | undefined

async function obey(line: string): Promise<string> {
  if (line === 'release') {
    await held?.release()
    return 'released'
  }
  try {
    held = await lockDirectory(line.slice('lock '.length))
    return 'locked'
  } catch (error) {
    return error instanceof OdradekError ? error.code : String(error)
  }
}

console.log(process.pid)
for await (const line of createInterface({ input: process.stdin })) console.log(await obey(line))
