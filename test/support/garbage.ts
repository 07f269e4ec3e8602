/** The garbage collector on demand, in a process that was started without the flag for it. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

/** Collects what nothing holds any more. Lets the event loop turn first, since pending reactions hold things. */
export async function collectGarbage(): Promise<void> {
  for (let i = 0; i < 3; i++) {
    await new Promise((resolve) => setTimeout(resolve, 0))
    gc()
  }
}

/** The same at once, for what no pending reaction can hold; answers the bytes in use. */
export function collected(): number {
  gc()
  return bytesInUse()
}

/** Bytes in use after a collection: objects, and buffers outside of the heap. */
export async function usedBytes(): Promise<number> {
  await collectGarbage()
  return bytesInUse()
}

function bytesInUse(): number {
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
