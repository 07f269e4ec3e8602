/** The program itself, in a process of its own: exit codes, signals, pipes. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { openBroker } from '../../src/index.ts'
import {
  closedDirectory,
  flipBit,
  folder,
  forgetFolders,
  MAIN,
  odradek,
  program,
  ROOT,
  segmentsOf,
  stateOf,
} from './kit.ts'

afterAll(forgetFolders)

describe('the program', () => {
  it('answers what its commands do, in its exit code too', async () => {
    const path = await closedDirectory()
    expect(await program(['verify', path])).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/^sound: /),
    })
    await flipBit(join(path, (await segmentsOf(path))[0] as string), 500)
    expect(await program(['verify', path])).toMatchObject({ code: 1, stderr: '' })
    expect(await program(['verify', '--what'])).toMatchObject({ code: 2, stdout: '' })
    const { stdout } = await odradek('inspect', path)
    expect(await program(['inspect', path], undefined, { FORCE_COLOR: '1' })).toMatchObject({
      code: 0,
      stdout,
    })
  })

  it('ends without a word when its pipe is closed', async () => {
    const path = await closedDirectory()
    const ran = await program(['inspect', path, '--batches', 'orders'], (child) => child.stdout?.destroy())
    expect({ ...ran, stdout: '' }).toEqual({ code: 141, signal: null, stdout: '', stderr: '' })
  })

  it('is ended by an interrupt, also in the middle of output that nobody takes, and says nothing', async () => {
    const path = await folder()
    const broker = await openBroker(`file:${path}`, { durability: 'os' })
    const topic = await broker.createTopic<number>('jobs')
    for (let i = 0; i < 2_000; i++) await topic.publish(i)
    await broker.close()
    const child = spawn(
      process.execPath,
      ['--import', 'tsx', MAIN, 'inspect', path, '--batches', 'jobs', '--json'],
      {
        cwd: ROOT,
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    )
    let complaints = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      complaints += text
    })
    await once(child.stdout, 'readable')
    child.kill('SIGINT')
    expect(await once(child, 'exit')).toEqual([null, 'SIGINT'])
    expect(complaints).toBe('')
  })
})

describe('a process that was killed', () => {
  it('leaves a directory that is shown as nobody’s, with all that it was told was accepted', async () => {
    const path = await folder()
    const script = `
      import { openBroker } from ${JSON.stringify(join(ROOT, 'src', 'index.ts'))}
      const broker = await openBroker(${JSON.stringify(`file:${path}`)}, { segmentBytes: 4096, journalBytes: 65536 })
      const topic = await broker.createTopic('jobs')
      for (let i = 0; ; i++) {
        await topic.publish({ i, text: 'x'.repeat(200) })
        process.stdout.write(i + '\\n')
      }`
    const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let told = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      told += text
    })
    while (told.split('\n').length < 500) await once(child.stdout, 'data')
    const open = await odradek('inspect', path)
    expect(open.stdout).toMatch(new RegExp(`^owner +process ${child.pid} on `, 'm'))
    child.kill('SIGKILL')
    await once(child, 'exit')
    const before = await stateOf(path)
    const { stdout } = await odradek('inspect', path, '--json')
    const report = JSON.parse(stdout)
    expect(report).toMatchObject({ owner: null, clean: false, recovery: { refusals: [] } })
    expect(report.logs[0].end).toBeGreaterThanOrEqual(told.trimEnd().split('\n').length)
    expect((await odradek('verify', path)).code).toBe(0)
    expect(await stateOf(path)).toEqual(before)
    await rm(path, { recursive: true })
  })
})
