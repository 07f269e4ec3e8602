/**
 * Kafka Streams counts words exactly once (clients/tools/…/WordCount.java), is killed, and the server is started anew.
 *
 *   lines ─► words ─► repartition topic ─► counts ◄─► changelog, compacted
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Driver } from './driver.ts'
import { javaCommand } from './program.ts'
import type { ProgramTrial } from './programs.ts'
import type { Trial } from './trial.ts'
import { text } from './values.ts'

const WORDS = ['to', 'be', 'or', 'not']
const ROUND = 40

/** Lines `from` to `to`: each has every word once. */
async function say({ broker }: Trial, from: number, to: number): Promise<void> {
  for (let i = from; i < to; i++) await broker.publish('lines', WORDS.join(' '), { key: `k${i}` })
}

/** What was counted, in order, by word. */
async function counted({ broker }: Trial): Promise<Map<string, number[]>> {
  const counts = new Map<string, number[]>(WORDS.map((word) => [word, []]))
  for (const { partition } of broker.describe('counts').partitions) {
    for (const { key, value } of await broker.read('counts', partition)) {
      counts.get(text(key))?.push(Number(Buffer.from(value as Uint8Array).readBigInt64BE()))
    }
  }
  return counts
}

async function untilCounted(trial: Trial, count: number): Promise<void> {
  let counts = await counted(trial)
  const isThere = (): boolean => [...counts.values()].every((each) => (each.at(-1) ?? 0) >= count)
  await trial.drivers.until(`${count} of each word`, () => {
    void counted(trial).then((now) => {
      counts = now
    })
    return isThere()
  })
  for (const each of counts.values()) {
    expect(each.at(-1)).toBe(count)
    // Committed once, each is more than the one before.
    expect(each).toEqual([...new Set(each)].sort((a, b) => a - b))
  }
}

async function wordCount(trial: Trial): Promise<void> {
  const folders: string[] = []
  const start = (): Driver => {
    const folder = mkdtempSync(join(tmpdir(), 'odradek-streams-'))
    folders.push(folder)
    return trial.drivers.start(javaCommand('WordCount'), trial.server.bootstrap, folder)
  }
  try {
    await trial.broker.createTopic('lines', { partitions: 2 })
    await trial.broker.createTopic('counts', { partitions: 2 })
    const first = start()
    await say(trial, 0, ROUND)
    await untilCounted(trial, ROUND)
    await first.kill('SIGKILL')
    await say(trial, ROUND, 2 * ROUND)
    // It has nothing on its disk: what it knows comes from the changelog.
    const second = start()
    await untilCounted(trial, 2 * ROUND)
    await trial.restart()
    await say(trial, 2 * ROUND, 3 * ROUND)
    await untilCounted(trial, 3 * ROUND)
    await second.kill('SIGTERM')
  } finally {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  }
}

export const STREAMS: ProgramTrial = {
  name: 'Kafka Streams: words counted exactly once, through its death and a restart of the server',
  run: wordCount,
}
