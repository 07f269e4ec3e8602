import { rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { openBroker } from '../../src/index.ts'
import type { Finding } from '../../src/log/file/segment-check.ts'
import type { Verified } from '../../src/log/file/verify.ts'
import {
  Captured,
  closedDirectory,
  cutAt,
  flipBit,
  folder,
  forgetFolders,
  indexOf,
  leftDirectory,
  OPTIONS,
  odradek,
  odradekWith,
  publishSome,
  segmentsOf,
} from './kit.ts'

afterAll(forgetFolders)

describe('verify', () => {
  it('answers 0 where everything is as it was written', async () => {
    for (const path of [await closedDirectory(), await leftDirectory()]) {
      const { code, stdout, stderr } = await odradek('verify', path)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout).toMatch(
        /^sound: \d logs?, \d+ segments?, [\d,]+ bytes?, [\d,]+ groups? in the journal\n$/,
      )
    }
  })

  it.each<[string, (path: string) => Promise<string>, RegExp]>([
    [
      'a sealed segment',
      async (path) => {
        const [first] = await segmentsOf(path)
        await flipBit(join(path, first as string), 1_000)
        return first as string
      },
      /^(\S+):(\d+): the CRC does not match$/m,
    ],
    [
      'the active segment',
      async (path) => {
        const active = (await segmentsOf(path)).at(-1) as string
        await flipBit(join(path, active), 100)
        return active
      },
      /^(\S+):(\d+): the CRC does not match$/m,
    ],
    [
      'a footer',
      async (path) => {
        const [first] = await segmentsOf(path)
        await cutAt(join(path, first as string), (await stat(join(path, first as string))).size - 20)
        return first as string
      },
      /^(\S+):(\d+): the footer does not say what it should$/m,
    ],
    [
      'a missing segment',
      async (path) => {
        const [first] = await segmentsOf(path)
        await rm(join(path, first as string))
        return first as string
      },
      /^(\S+):(0): it is missing$/m,
    ],
    [
      'the checkpoint',
      async (path) => {
        await flipBit(join(path, 'checkpoint'), 200)
        return 'checkpoint'
      },
      /^(\S+):(\d+): its CRC does not hold$/m,
    ],
  ])('names file and byte of damage in %s, and answers 1', async (_, damage, line) => {
    const path = await closedDirectory()
    const file = await damage(path)
    const { code, stdout, stderr } = await odradek('verify', path)
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
    expect(line.exec(stdout)?.[1]).toBe(file)
    expect(stdout).toMatch(/^1 finding: /m)
  })

  it('names damage in the middle of the journal, and takes its torn end and a useless index for harmless', async () => {
    const path = await leftDirectory()
    await cutAt(join(path, 'journal/a'), 20_000)
    const torn = await odradek('verify', path)
    expect(torn).toMatchObject({ code: 0, stderr: '' })
    expect(torn.stdout).toMatch(
      /^journal\/a:\d+: harmless: a group of which \d+ bytes were written[\s\S]*^sound: /m,
    )
    await flipBit(join(path, 'journal/a'), 5_000)
    const damaged = await odradek('verify', path)
    expect(damaged.code).toBe(1)
    expect(damaged.stdout).toMatch(/^journal\/a:\d+: group \d+ cannot be read, but was on the disk/m)
    const other = await closedDirectory()
    await flipBit(join(other, await indexOf(other)), 20)
    const { code, stdout } = await odradek('verify', other)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^logs\/\S+\.index:20: harmless: it is no index/m)
  })

  it('prints one document with --json', async () => {
    const path = await closedDirectory()
    const [first] = await segmentsOf(path)
    await flipBit(join(path, first as string), 1_000)
    const { code, stdout } = await odradek('verify', path, '--json')
    const report = JSON.parse(stdout) as { sound: boolean; findings: Finding[]; checked: Verified }
    expect(code).toBe(1)
    expect(report).toMatchObject({
      directory: path,
      sound: false,
      findings: [
        { file: first, position: expect.any(Number), what: 'the CRC does not match', harmless: false },
      ],
      checked: { logs: 2, segments: expect.any(Number), sizeBytes: expect.any(Number), groups: 0 },
    })
    expect(Object.keys(report)).toEqual(['directory', 'sound', 'findings', 'checked'])
  })

  it('beside a broker says so, and finds nothing while records come and go', async () => {
    const path = await folder()
    const broker = await openBroker(`file:${path}`, { ...OPTIONS, journalBytes: 65_536 })
    try {
      await publishSome(broker)
      const jobs = await broker.createTopic<string>('jobs', { retention: { records: 50 } })
      let going = true
      const publishing = (async () => {
        while (going) await jobs.publish('x'.repeat(500))
      })()
      for (let i = 0; i < 10; i++) {
        const { code, stdout, stderr } = await odradek('verify', path)
        expect([code, stdout]).toEqual([0, expect.stringMatching(/^sound: /)])
        expect(stderr).toMatch(new RegExp(`is open: process ${process.pid} on `))
      }
      going = false
      await publishing
    } finally {
      await broker.close()
    }
  })

  it('shows how far it is on a terminal, once it takes a while, and wipes that away', async () => {
    const path = await closedDirectory()
    let now = 0
    const monotonic = (): number => {
      now += 700
      return now
    }
    const [first] = await segmentsOf(path)
    await flipBit(join(path, first as string), 1_000)
    const stderr = new Captured({ tty: true })
    const { code } = await odradekWith({ stderr, monotonic }, 'verify', path)
    expect(code).toBe(1)
    const [, shown, ...more] = stderr.text.split('\r\x1b[K')
    expect(shown).toMatch(/^\d+ % of [\d,]+ bytes: logs\/\S+\.log$/)
    expect(more.at(-1)).toBe('')
    const quick = new Captured({ tty: true })
    await odradekWith({ stderr: quick }, 'verify', path)
    expect(quick.text).toBe('')
    const piped = new Captured()
    await odradekWith({ stderr: piped, monotonic }, 'verify', path)
    expect(piped.text).toBe('')
  })
})
